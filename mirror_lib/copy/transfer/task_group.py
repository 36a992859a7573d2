"""The asyncio tasks of one copy task, none of which fails unseen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from mirror_lib.errors import MirrorError

_Result = TypeVar("_Result")


_log = logging.getLogger(__name__)


def run_loop(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end on uvloop's event loop, which costs less CPU, or on asyncio's where that is absent."""
    try:
        from uvloop import run
    except ImportError:
        return asyncio.run(main)
    return run(main)


def internal_error(error: BaseException, who: str) -> MirrorError:
    """The error for the accounts of a task's partitions. An exception would end all tasks of the job.

    Args:
        who: the part that failed, such as `the copy task`.
    """
    if isinstance(error, MirrorError):
        return error
    _log.error("%s failed", who, exc_info=error)
    return MirrorError(
        f"internal error in {who}: {type(error).__name__}: {error}.",
        action="Please report it with the task's log.",
    )


class Background:
    """Starts asyncio tasks, keeps references to them, reports any that fails, and cancels those that remain.

    Kafka errors of a partition are kept in that partition's account. An exception in a task is an internal error: if it
    went unnoticed, the copy would wait for ever.
    """

    def __init__(self, crashed: Callable[[BaseException], None]) -> None:
        """Create it in the event loop of the tasks; `crashed` is called with the exception of a failed task."""
        self._crashed = crashed
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._stopped = False

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run `work` in parallel with the other tasks."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish_task)
        return task

    def when_done(self, work: Awaitable[_Result], then: Callable[[asyncio.Future[_Result]], None]) -> None:
        """Call `then` when `work` is done, unless `stop` is called before.

        For thousands of responses per second: if `work` is a future, no task is made for it.
        """
        future = asyncio.ensure_future(work)
        self._tasks.add(future)
        future.add_done_callback(partial(self._finish_future, then))

    async def stop(self) -> None:
        """Cancel all running tasks and wait for their end."""
        self._stopped = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finish_future(self, then: Callable[[asyncio.Future[_Result]], None], future: asyncio.Future[_Result]) -> None:
        self._tasks.discard(future)
        if self._stopped or future.cancelled():
            return
        try:
            then(future)
        except Exception as error:
            self._crashed(error)

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)
