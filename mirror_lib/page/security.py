"""What browsers must do and must not do with the page, and how actions are told from forged requests."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mirror_lib.page.context import ThePage

#: Scripts of other pages cannot send it without asking first, and forms cannot send it at all.
ACTION_HEADER = "X-Replication-Action"

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SafeAnswers:
    """A middleware: every answer says what it may be used for, and is not kept by anybody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to whatever the app answers."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                # Answers differ from person to person; only assets say something else.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_safely)


def require_same_origin(request: Request, here: ThePage) -> None:
    """Whether a request that changes something comes from a page of ours: a cookie alone says nothing about that.

    Browsers tell where a request comes from by `Origin` and `Sec-Fetch-Site`; programs tell neither and have a token.
    """
    if request.headers.get(ACTION_HEADER) != "1":
        raise HTTPException(403, f"Actions need the header {ACTION_HEADER}: 1.")
    if not request.headers.get("Content-Type", "").startswith("application/json"):
        raise HTTPException(415, "Actions are JSON.")
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise HTTPException(403, "Actions are only taken from Airflow's own pages.")
    origin = request.headers.get("Origin")
    if origin is not None and _address(origin) not in {request.url.netloc.lower(), *here.control.own_addresses()}:
        raise HTTPException(
            403, "Actions are only taken from Airflow's own pages; behind a proxy, [api] base_url names them."
        )


def _address(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
