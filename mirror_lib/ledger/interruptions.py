"""Signals during a write transaction: they wait for its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_INTERRUPTING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def interruptions_wait() -> Iterator[None]:
    """Call Python's handlers of SIGTERM and SIGINT after this block; only in the main thread, where Python calls them.

    They raise exceptions: between two instructions of a transaction, one could leave it open. The process would then
    wait for its own lock when it records how it has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    # A signal without a handler ends the process at once, and with it the transaction.
    handlers = {each: handler for each in _INTERRUPTING if callable(handler := signal.getsignal(each))}
    try:
        for each in handlers:
            signal.signal(each, note)
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for number in dict.fromkeys(arrived):
            signal.raise_signal(number)
