"""Security headers of the page, and protection of actions against forged requests."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mirror_lib.features.page.context import ThePage, TheVisitor
from mirror_lib.features.page.limits import Kind

_log = logging.getLogger(__name__)

#: Scripts of other sites cannot send it without a preflight request, and forms cannot send it at all.
ACTION_HEADER = "X-Replication-Action"
#: Bytes of a request's body: the longest order is a note of 1,000 characters, of up to twelve bytes each in JSON.
LARGEST_BODY = 16 * 1024

SAFE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SafeAnswers:
    """Middleware: set security and no-store headers; limit the request body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to every response, and count the bytes of the request body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SAFE_HEADERS)
                # Responses differ by visitor; only assets override this.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, _limit_body(Headers(scope=scope), receive), send_safely)


def _limit_body(headers: Headers, receive: Receive) -> Receive:
    """Reject a body by its Content-Length, or by its actual size if there is none."""
    announced = headers.get("Content-Length", "")
    known_too_large = announced.isascii() and announced.isdigit() and int(announced[:20]) > LARGEST_BODY
    read = 0

    async def receive_bounded() -> Message:
        nonlocal read
        if known_too_large:
            raise HTTPException(413, _TOO_LARGE)
        message = await receive()
        if message["type"] == "http.request":
            read += len(message.get("body", b""))
            if read > LARGEST_BODY:
                raise HTTPException(413, _TOO_LARGE)
        return message

    return receive_bounded


_TOO_LARGE = f"The request body is too large; the limit is {LARGEST_BODY} bytes."


def require_same_origin(request: Request, here: ThePage, visitor: TheVisitor) -> None:
    """Check that a request that changes something comes from this page: a cookie alone does not prove it.

    Browsers send the origin of a request in `Origin` and `Sec-Fetch-Site`; programs send neither and have a token.
    """
    try:
        _check_origin(request, here.control.own_addresses())
    except HTTPException as error:
        # Another site may be using this user's login: it is not the user's action, so it is not for the audit log.
        _log.warning("Refused %s %s of %r: %s", request.method, request.url.path, visitor.name, error.detail)
        raise


def _check_origin(request: Request, own_addresses: frozenset[str]) -> None:
    if request.headers.get(ACTION_HEADER) != "1":
        raise HTTPException(403, f"Actions need the header {ACTION_HEADER}: 1.")
    if not request.headers.get("Content-Type", "").startswith("application/json"):
        raise HTTPException(415, "Actions need the content type application/json.")
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise HTTPException(403, "Actions are accepted only from Airflow's own pages.")
    origin = request.headers.get("Origin")
    if origin is not None and _address(origin) not in {request.url.netloc.lower(), *own_addresses}:
        raise HTTPException(
            403,
            "Actions are accepted only from Airflow's own pages; behind a proxy, set [api] base_url to their address.",
        )


def limit_requests(kind: Kind) -> Callable[[Request, ThePage, TheVisitor], Awaitable[None]]:
    """Return a dependency that counts requests of a visitor to a route; see `limits`."""

    async def take(request: Request, here: ThePage, visitor: TheVisitor) -> None:
        here.limits.take(kind, f"{request.method} {request.scope['route'].path}", visitor.name)

    return take


def _address(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
