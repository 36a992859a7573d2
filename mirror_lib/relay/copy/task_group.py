"""The asyncio tasks of one copy task, with the certainty that none fails unseen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from mirror_lib.errors import MirrorError

_Result = TypeVar("_Result")


_log = logging.getLogger(__name__)


def reported(error: BaseException, who: str) -> MirrorError:
    """What ends a part of a task, for the accounts of its partitions: raised, it would take those of all tasks with it.

    Args:
        who: met it, such as `the copy task`.
    """
    if isinstance(error, MirrorError):
        return error
    _log.error("%s failed", who, exc_info=error)
    return MirrorError(
        f"{who} met a fault of this program: {type(error).__name__}: {error}.",
        action="The task's log shows where; please report it.",
    )


class Background:
    """Starts asyncio tasks, keeps them alive, tells of any that fails, and ends those that are left.

    What Kafka may do to a partition is kept in that partition's account. An exception that comes out of a task is a
    fault of this program: without notice of it, the copy would wait for ever.
    """

    def __init__(self, crashed: Callable[[BaseException], None]) -> None:
        """In the event loop that is to run them; `crashed` gets the exception of a task that failed."""
        self._crashed = crashed
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._stopped = False

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run `work` beside what runs already."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def when_done(self, work: Awaitable[_Result], then: Callable[[asyncio.Future[_Result]], None]) -> None:
        """Call `then` with what `work` came to, unless `stop` is called before.

        For answers that come by the thousand in a second: where `work` is a future, no task is made for it.
        """
        future = asyncio.ensure_future(work)
        self._tasks.add(future)
        future.add_done_callback(partial(self._done, then))

    async def stop(self) -> None:
        """Cancel what still runs and wait for its end."""
        self._stopped = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, then: Callable[[asyncio.Future[_Result]], None], future: asyncio.Future[_Result]) -> None:
        self._tasks.discard(future)
        if self._stopped or future.cancelled():
            return
        try:
            then(future)
        except Exception as error:
            self._crashed(error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)
