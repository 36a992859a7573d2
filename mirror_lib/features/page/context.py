"""Dependencies of routes: the flows, Airflow, the visitor, and the ledgers that the visitor may read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, NoReturn

from fastapi import Depends, HTTPException, Path, Request

from mirror_lib.features.page.api_models import Seen
from mirror_lib.features.page.control import Control, Visitor
from mirror_lib.features.page.flows import FlowSource, ServedFlow
from mirror_lib.features.page.limits import RateLimits
from mirror_lib.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class Page:
    """The arguments of the app."""

    flows: FlowSource
    control: Control
    limits: RateLimits


def page(request: Request) -> Page:
    """Return the app's own `Page`."""
    found: Page = request.app.state.page
    return found


async def _who(request: Request) -> Visitor:
    return await page(request).control.visitor(request)


def _visitor(who: Annotated[Visitor, Depends(_who)]) -> Visitor:
    if not who.may_open():
        raise HTTPException(403, "You have no permission to see this page.")
    return who


ThePage = Annotated[Page, Depends(page)]
TheVisitor = Annotated[Visitor, Depends(_visitor)]
#: Airflow's own rule for ids.
DagId = Annotated[str, Path(min_length=1, max_length=250, pattern=r"^[\w.\-]+$")]


async def require_visitor(visitor: TheVisitor) -> None:
    """Require a visitor who may open the page."""


def no_such_flow(dag_id: str) -> NoReturn:
    """Raise the same error for a flow that does not exist and one that the visitor may not read."""
    raise HTTPException(404, f"There is no flow with the DAG {dag_id}, or you have no permission to read it.")


@dataclass(frozen=True, slots=True)
class Looked:
    """One flow that the visitor may read, and its ledger."""

    flow: ServedFlow
    #: None if it has no data yet.
    ledger: Ledger | None
    visitor: Visitor
    now: datetime

    def seen_at(self, at: datetime) -> Seen:
        """Return the time of an observation of the flow."""
        return Seen(at=at, stale_after_seconds=self.flow.stale_after_seconds)


def _look(dag_id: DagId, here: ThePage, visitor: TheVisitor) -> Looked:
    flow = here.flows.read().by_dag(dag_id)
    if flow is None or not visitor.readable([flow.dag_id]):
        no_such_flow(dag_id)
    return Looked(flow, here.flows.ledger(flow.config), visitor, datetime.now(UTC))


TheFlow = Annotated[Looked, Depends(_look)]


def visible(flows: Collection[ServedFlow], visitor: Visitor) -> list[ServedFlow]:
    """Return the flows whose DAG the visitor may read."""
    readable = visitor.readable([flow.dag_id for flow in flows])
    return [flow for flow in flows if flow.dag_id in readable]
