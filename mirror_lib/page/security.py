"""What browsers must do and must not do with the page, and how actions are told from forged requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from fastapi import HTTPException, Request, Response

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


async def add_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """A middleware: every answer says what it may be used for, and is not kept by anybody."""
    response = await call_next(request)
    for name, value in _HEADERS.items():
        response.headers[name] = value
    # Answers differ from person to person; only assets say something else.
    response.headers.setdefault("Cache-Control", "no-store")
    return response


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
