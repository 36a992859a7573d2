"""Actions on the page. Each action is recorded in the audit log before it is done; without the record it is not done.

An action that was not done has an entry with the reason: `<action>-refused` if it was not begun, `<action>-failed`
after the entry of the action if it was.

The page itself connects to no broker. A decision about a gap that concerns only the ledger is made at once; one that
needs the clusters is made by a run of the flow, with the decision in its conf.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Body, Depends, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field

from mirror_lib.errors import LedgerError, MirrorError
from mirror_lib.features.page.api_models import Answer, StorableText
from mirror_lib.features.page.context import Looked, TheFlow, ThePage
from mirror_lib.features.page.limits import Kind
from mirror_lib.features.page.queries import PageQueries
from mirror_lib.features.page.security import limit_requests, require_same_origin
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.ledger.store import Ledger

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

router = APIRouter(
    prefix="/flows/{dag_id}", dependencies=[Depends(require_same_origin), Depends(limit_requests(Kind.ACTIONS))]
)


class _Order(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Pause(_Order):
    """Pause or unpause a flow's DAG."""

    paused: bool


class RunNow(_Order):
    """Start a run of the flow."""

    dry_run: bool = False


class Verify(_Order):
    """Start a verification."""

    mode: Literal["recent", "full", "sample", "state"] = "recent"


class GapDecision(StrEnum):
    """The decisions that can be made here."""

    ACCEPT = "accept"
    RECOPY = "recopy"
    STOP = "stop"


class Decide(_Order):
    """Decide about a gap."""

    decision: GapDecision
    note: Annotated[StorableText, Field(max_length=1000)] = ""


class Done(Answer):
    """The result of an action."""

    what: str
    #: The DAG run that was started, and its DAG.
    dag_id: str | None = None
    run_id: str | None = None


@router.post("/pause")
def pause(here: ThePage, looked: TheFlow, order: Annotated[Pause, Body()]) -> Done:
    """Pause or unpause. Airflow then starts no further task of a current run."""
    dag_id = looked.flow.dag_id
    word = "pause" if order.paused else "unpause"
    with _refusals_noted(looked, word, dag_id):
        _require(looked.visitor.may_pause(dag_id), "edit", dag_id)
    _act_and_note(here, looked, word, dag_id, {}, lambda: here.control.pause(dag_id, order.paused))
    return Done(
        what="Paused. No scheduled run starts, and a run in progress starts no further tasks."
        if order.paused
        else "Unpaused. Runs start on schedule again."
    )


@router.post("/run")
def run(here: ThePage, looked: TheFlow, order: Annotated[RunNow, Body()]) -> Done:
    """Start a run of the flow's DAG."""
    conf = {"dry_run": True} if order.dry_run else {}
    return _trigger(here, looked, "run-now", looked.flow.dag_id, looked.flow.dag_id, conf)


@router.post("/verify")
def verify(here: ThePage, looked: TheFlow, order: Annotated[Verify, Body()]) -> Done:
    """Start a run of the DAG that compares the flow's target with its source."""
    dag_id = looked.flow.verify_dag_id
    return _trigger(here, looked, "verify", dag_id, dag_id, {"mode": order.mode})


@router.post("/gaps/{gap_id}")
def decide(
    here: ThePage,
    looked: TheFlow,
    gap_id: Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[\w\-]+$")],
    order: Annotated[Decide, Body()],
) -> Done:
    """Stop a partition at once, or start a run that skips the lost records or copies again."""
    dag_id = looked.flow.dag_id
    action = f"gap-{order.decision.value}"
    with _refusals_noted(looked, action, gap_id):
        _require(looked.visitor.may_pause(dag_id) and looked.visitor.may_trigger(dag_id), "edit", dag_id)
        gap = None if looked.ledger is None else PageQueries(looked.ledger).find_gap(gap_id)
        if gap is None or gap.flow != looked.flow.name:
            raise HTTPException(404, "This gap does not exist.")
        if gap.state != GapState.OPEN:
            raise HTTPException(409, f"This gap is already {gap.state}, by {gap.decided_by or 'unknown'}.")
    detail = {"topic": gap.topic, "partition": gap.partition, "cause": gap.cause, "note": order.note}
    if order.decision is GapDecision.STOP:
        note = order.note or None
        _act_and_note(here, looked, action, gap.id, detail, lambda: _stop(here, looked, gap, note))
        return Done(
            what=f"{gap.topic}-{gap.partition} is no longer replicated. To resume it, run `mirror gaps resume`."
        )
    # A run selects topics by Java regexes, in which a dot is any character.
    conf = {"topics": [re.escape(gap.topic)], "gaps": order.decision.value}
    return _trigger(here, looked, action, gap.id, dag_id, conf, detail)


def _stop(here: ThePage, looked: Looked, gap: GapRow, note: str | None) -> None:
    # They import Kafka's client, which the page needs only for decisions.
    from mirror_lib.copy.gaps.gaps import apply_decisions, plan_in_ledger
    from mirror_lib.copy.gaps.resolutions import Decision
    from mirror_lib.copy.run_lock import hold_lock

    ledger, settings = _ledger(here, looked), looked.flow.settings
    lock = hold_lock(
        ledger,
        flow=looked.flow.name,
        run_id=f"decision-{uuid.uuid4()}",
        lease_seconds=settings.run_lease_seconds,
    )
    with lock as lease:
        planned = plan_in_ledger(Decision.STOP, [gap])
        lease.check()
        apply_decisions(settings, None, ledger, planned, by=looked.visitor.name, note=note)


def _trigger(
    here: ThePage,
    looked: Looked,
    action: str,
    subject: str,
    dag_id: str,
    conf: Mapping[str, Any],
    detail: Mapping[str, Any] | None = None,
) -> Done:
    visitor = looked.visitor
    with _refusals_noted(looked, action, subject):
        _require(visitor.may_trigger(dag_id), "start runs of", dag_id)
    details = {**(detail or {}), "dag": dag_id, "conf": dict(conf)}
    run_id = _act_and_note(
        here, looked, action, subject, details, lambda: here.control.trigger(dag_id, conf, by=visitor.name)
    )
    return Done(what=f"Airflow created the run {run_id}.", dag_id=dag_id, run_id=run_id)


def _act_and_note(
    here: ThePage, looked: Looked, action: str, subject: str, detail: Mapping[str, Any], act: Callable[[], _Result]
) -> _Result:
    ledger = _ledger(here, looked)
    ledger.audits.note(by=looked.visitor.name, action=action, subject=subject, flow=looked.flow.name, detail=detail)
    try:
        return act()
    except MirrorError as error:
        _note_outcome(looked, ledger, f"{action}-failed", subject, error.attributes())
        raise
    except Exception as error:
        # The message of an internal error may contain anything, including a database password.
        failed = {"reason": "error", "what": type(error).__name__}
        _note_outcome(looked, ledger, f"{action}-failed", subject, failed)
        raise


@contextmanager
def _refusals_noted(looked: Looked, action: str, subject: str) -> Iterator[None]:
    """Record rejected and invalid requests in the audit log."""
    try:
        yield
    except HTTPException as refusal:
        # A request that is not permitted must not create a ledger.
        if looked.ledger is not None:
            detail = {"status": refusal.status_code, "what": refusal.detail}
            _note_outcome(looked, looked.ledger, f"{action}-refused", subject, detail)
        raise


def _note_outcome(looked: Looked, ledger: Ledger, action: str, subject: str, detail: Mapping[str, Any]) -> None:
    """Record what was not done. The visitor sees the reason, even if it cannot be recorded."""
    try:
        ledger.audits.note(by=looked.visitor.name, action=action, subject=subject, flow=looked.flow.name, detail=detail)
    except LedgerError as error:
        _log.error(
            "%s of %s by %s could not be recorded in the audit log: %s", action, subject, looked.visitor.name, error
        )


def _ledger(here: ThePage, looked: Looked) -> Ledger:
    found = looked.ledger or here.flows.ledger(looked.flow.config, create=True)
    assert found is not None
    return found


def _require(allowed: bool, what: str, dag_id: str) -> None:
    if not allowed:
        raise HTTPException(403, f"You have no permission to {what} the DAG {dag_id}.")
