"""Asks an app without a server in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import httpx
from fastapi import FastAPI

from tests.support.page.app import ACTION


class _AsyncPieces:
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class Client:
    """Asks an app."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return self._ask("GET", path, headers=headers)

    def act(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Post what the page itself would post; `headers` replaces those of an action."""
        return self._ask("POST", path, headers=ACTION if headers is None else headers, json=body)

    def send(self, path: str, body: bytes | Iterable[bytes], headers: Mapping[str, str]) -> httpx.Response:
        """Post any bytes, or one piece after the other without a length."""
        pieces = body if isinstance(body, bytes) else _AsyncPieces(body)
        return self._ask("POST", path, headers=headers, content=pieces)

    def request(self, method: str, path: str) -> httpx.Response:
        """By any method."""
        return self._ask(method, path)

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            # An error that the app does not answer itself is an answer 500, as in a server.
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://page.example") as client:
                return await client.request(method, path, **more)

        return asyncio.run(ask())
