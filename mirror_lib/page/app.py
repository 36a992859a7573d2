"""The app that Airflow mounts. Every route but the metrics asks who is there; those ask by themselves."""

from __future__ import annotations

import html
import logging

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, JSONResponse, Response

from mirror_lib.errors import ConfigurationError, LedgerError, MirrorError, RunLockedError
from mirror_lib.page import actions, assets, cutovers, flow, groups, metrics, overview, partitions, proofs
from mirror_lib.page.answers import Problem
from mirror_lib.page.context import Page, require_visitor
from mirror_lib.page.control import Control
from mirror_lib.page.errors import DagRefusedError, DagUnknownError
from mirror_lib.page.security import SafeAnswers
from mirror_lib.page.served import FlowSource

_log = logging.getLogger(__name__)

_STATUS: dict[type[MirrorError], int] = {
    DagUnknownError: 404,
    DagRefusedError: 409,
    RunLockedError: 409,
    # The page works; what it reads from does not.
    LedgerError: 503,
    ConfigurationError: 503,
}


def create_app(flows: FlowSource, control: Control) -> FastAPI:
    """The page, its API and its metrics.

    Args:
        flows: what is shown.
        control: who may see it, and the DAGs that actions are about.
    """
    # Its own documentation would need scripts from elsewhere.
    app = FastAPI(title="Replication", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.page = Page(flows=flows, control=control)
    known = APIRouter(dependencies=[Depends(require_visitor)])
    api = APIRouter(prefix="/api")
    for module in (overview, partitions, groups, proofs, actions, flow, cutovers):
        api.include_router(module.router)
    known.include_router(api)
    known.include_router(assets.router)
    app.include_router(known)
    app.include_router(metrics.router)
    app.add_middleware(SafeAnswers)
    app.add_exception_handler(MirrorError, _tell)
    app.add_exception_handler(HTTPException, _refuse)
    return app


async def _tell(_request: Request, error: Exception) -> Response:
    """An error of ours as it is: what happened and what to do."""
    assert isinstance(error, MirrorError)
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 502)
    _log.warning("The page could not answer: %s", error)
    return JSONResponse({"detail": Problem.of(error).model_dump()}, status_code=status)


async def _refuse(request: Request, error: Exception) -> Response:
    """People who are not logged in are told where to, programs get what they can read."""
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
