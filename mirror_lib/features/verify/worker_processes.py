"""Processes of this machine that share the work of one command."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import Any, Final

#: Threads of the clients would not survive a fork.
CONTEXT: Final[SpawnContext] = multiprocessing.get_context("spawn")


def _begin(prepare: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    # By default each process would show where Ctrl-C met it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if prepare is not None:
        prepare(*arguments)


@contextmanager
def worker_processes(
    count: int, prepare: Callable[..., None] | None = None, *arguments: Any
) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that end, at once and silently, when this one is interrupted or fails.

    Args:
        prepare: called in each of them with the arguments, before its work. Only so can values of `CONTEXT` be shared.
    """
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(count, mp_context=CONTEXT, initializer=_begin, initargs=(prepare, arguments)) as pool:
        try:
            yield pool
        except BaseException:
            # The executor would wait until they have done all.
            for each in set(multiprocessing.active_children()) - before:
                each.terminate()
            raise
