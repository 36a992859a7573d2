"""The app that Airflow mounts. Every route but the metrics requires a visitor; the metrics authenticate themselves."""

from __future__ import annotations

import html
import json
import logging

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response

from mirror_lib.errors import ConfigurationError, LedgerError, MirrorError, RunLockedError
from mirror_lib.features.page import actions, assets, cutovers, flow, groups, metrics, overview, partitions, rounds
from mirror_lib.features.page import verifications as proofs
from mirror_lib.features.page.api_models import Problem
from mirror_lib.features.page.context import Page, require_visitor
from mirror_lib.features.page.control import Control
from mirror_lib.features.page.errors import DagRefusedError, DagUnknownError, TooManyRequestsError
from mirror_lib.features.page.flows import FlowSource
from mirror_lib.features.page.limits import RateLimits
from mirror_lib.features.page.security import SAFE_HEADERS, SafeAnswers
from mirror_lib.printable_logs import make_logs_printable

_log = logging.getLogger(__name__)

_LONGEST_SENTENCE = 600
_STATUS: dict[type[MirrorError], int] = {
    DagUnknownError: 404,
    DagRefusedError: 409,
    RunLockedError: 409,
    TooManyRequestsError: 429,
    # The page works; its data source does not.
    LedgerError: 503,
    ConfigurationError: 503,
}


def create_app(flows: FlowSource, control: Control) -> FastAPI:
    """Return the page, its API and its metrics.

    Args:
        flows: the flows to show.
        control: authenticates visitors, and accesses the DAGs of actions.
    """
    make_logs_printable()
    # FastAPI's own documentation pages would load scripts from other hosts.
    app = FastAPI(title="Replication", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.page = Page(flows=flows, control=control, limits=RateLimits(flows.environment))
    # Each router is included directly: nesting would analyse every route once more.
    visitors = [Depends(require_visitor)]
    for module in (overview, partitions, groups, proofs, actions, flow, rounds, cutovers):
        app.include_router(module.router, prefix="/api", dependencies=visitors)
    app.include_router(assets.router, dependencies=visitors)
    app.include_router(metrics.router)
    app.add_middleware(SafeAnswers)
    app.add_exception_handler(MirrorError, _error_response)
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(RequestValidationError, _correct)
    app.add_exception_handler(Exception, _apologise)
    return app


async def _error_response(_request: Request, error: Exception) -> Response:
    """Return an error of this project as it is: what happened and what to do."""
    assert isinstance(error, MirrorError)
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 502)
    if isinstance(error, TooManyRequestsError):
        return _problem(Problem.of(error), status, **{"Retry-After": str(error.retry_after_seconds)})
    _log.warning("The page responded with an error: %s", error)
    return _problem(Problem.of(error), status)


async def _correct(_request: Request, error: Exception) -> Response:
    """Reject an invalid request. Its content is not repeated: JSON input may not be valid in a response."""
    assert isinstance(error, RequestValidationError)
    found = (f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:5])
    what = f"The request is not valid: {'; '.join(found)}"[:_LONGEST_SENTENCE]
    return _problem(Problem(reason="request", what=what, action="Correct these values."), 422)


async def _apologise(_request: Request, _error: Exception) -> Response:
    """Return an internal error. The server logs it; the visitor gets no details."""
    problem = Problem(
        reason="error", what="Internal error of the page.", action="Check the log of Airflow's API server."
    )
    # This response does not pass the middleware.
    return _problem(problem, 500, **SAFE_HEADERS, **{"Cache-Control": "no-store"})


def _problem(problem: Problem, status: int, **headers: str) -> Response:
    # Names may contain lone surrogates, which only an escape can represent.
    body = json.dumps({"detail": problem.model_dump()})
    return Response(body, status_code=status, media_type="application/json", headers=headers)


async def _refuse(request: Request, error: Exception) -> Response:
    """Redirect browsers that are not logged in to the login; return an error to programs."""
    assert isinstance(error, HTTPException)
    wants_page = "text/html" in request.headers.get("Accept", "")
    if error.status_code != 401 or not wants_page:
        return await http_exception_handler(request, error)
    page: Page = request.app.state.page
    login = html.escape(page.control.login_address(str(request.url)), quote=True)
    return HTMLResponse(
        '<!doctype html><html lang="en"><title>Replication</title>'
        f'<p>You are not logged in to Airflow. <a href="{login}">Log in</a></p></html>',
        status_code=401,
    )
