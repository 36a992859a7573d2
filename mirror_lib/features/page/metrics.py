"""`/metrics` for Prometheus. It has no user login, so a token in a file is accepted in addition to Airflow's."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Mapping
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.page.context import Page, page, visible
from mirror_lib.features.page.flows import ServedFlow
from mirror_lib.features.page.limits import Kind
from mirror_lib.ledger.store import Ledger
from mirror_lib.limited_files import read_limited

#: Path of a file with a token that may read the metrics of all flows, and nothing else.
TOKEN_FILE_VARIABLE = "MIRROR_METRICS_TOKEN_FILE"

#: Two separate limits: a logged-in user cannot exhaust the limit of the token.
_BY_TOKEN, _BY_LOGIN = "token", "login"

_log = logging.getLogger(__name__)

router = APIRouter()


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Return the metrics of all flows for the token of `MIRROR_METRICS_TOKEN_FILE`, else of those that the user may
    read.
    """
    here = page(request)
    if await run_in_threadpool(_has_token, request, here.flows.environment):
        here.limits.take(Kind.METRICS, _BY_TOKEN, "")
        return await run_in_threadpool(_render, here, None)
    visitor = await here.control.visitor(request)

    def for_visitor() -> Response:
        if not visitor.may_open():
            raise HTTPException(403, "You have no permission to see this page.")
        here.limits.take(Kind.METRICS, _BY_LOGIN, visitor.name)
        return _render(here, visible(here.flows.read().flows, visitor))

    return await run_in_threadpool(for_visitor)


def _render(here: Page, chosen: list[ServedFlow] | None) -> Response:
    flows = list(here.flows.read().flows) if chosen is None else chosen
    # Visitors of the page do not need it.
    from mirror_lib.features.metrics.prometheus import CONTENT_TYPE, render_metrics

    by_ledger: dict[int, tuple[Ledger, list[ServedFlow]]] = {}
    for flow in flows:
        ledger = here.flows.ledger(flow.config)
        if ledger is not None:
            by_ledger.setdefault(id(ledger), (ledger, []))[1].append(flow)
    parts = [render_metrics(ledger, [flow.settings for flow in members]) for ledger, members in by_ledger.values()]
    return Response(b"".join(parts), media_type=None, headers={"Content-Type": CONTENT_TYPE})


def _has_token(request: Request, environment: Mapping[str, str]) -> bool:
    named = environment.get(TOKEN_FILE_VARIABLE)
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if not named or scheme.lower() != "bearer":
        return False
    try:
        wanted = read_limited(Path(named)).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        # The request is not authenticated: the path of the file belongs in the log only.
        _log.error("%s: the file %s cannot be read: %s", TOKEN_FILE_VARIABLE, named, getattr(error, "strerror", error))
        raise ConfigurationError(
            "the token for metrics cannot be checked.", action="Check the log of Airflow's API server."
        ) from None
    return bool(wanted) and hmac.compare_digest(given.strip().encode(), wanted.encode())
