"""The asyncio tasks of one copy task, with the certainty that none fails unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


class Background:
    """Starts asyncio tasks, keeps them alive, tells of any that fails, and ends those that are left.

    What Kafka may do to a partition is kept in that partition's account. An exception that comes out of a task is a
    fault of this program: without notice of it, the copy would wait for ever.
    """

    def __init__(self, crashed: Callable[[BaseException], None]) -> None:
        """In the event loop that is to run them; `crashed` gets the exception of a task that failed."""
        self._crashed = crashed
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run `work` beside what runs already."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel what still runs and wait for its end."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)
