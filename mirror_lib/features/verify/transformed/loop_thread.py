"""An event loop in its own thread: Spark's workers pull and push rows without a loop while clients continue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients

_Answer = TypeVar("_Answer")


class LoopThread:
    """Runs coroutines for a thread that waits for them, and keeps one client open."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Run something to its end.

        Raises:
            Exception: whatever it raises.
        """
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def connect(self, connection: Connection) -> RawClient:
        """A client that `close` closes.

        Raises:
            MirrorError: the cluster cannot be connected to.
        """

        async def open_client() -> RawClient:
            (client,) = await self._stack.enter_async_context(open_clients(connection))
            return client

        return self.run(open_client())

    def close(self) -> None:
        """End all pending work."""
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        current = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not current]
        await self._stack.aclose()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
