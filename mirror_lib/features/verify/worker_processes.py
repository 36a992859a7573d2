"""Processes of this machine that share the work of one command."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that end, at once and silently, when this one is interrupted or fails."""
    before = set(multiprocessing.active_children())
    # Threads of the clients would not survive a fork. By default each process would show where Ctrl-C met it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        count, mp_context=context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL)
    ) as pool:
        try:
            yield pool
        except BaseException:
            # The executor would wait until they have done all.
            for each in set(multiprocessing.active_children()) - before:
                each.terminate()
            raise
