"""Processor time for all expressions of one file or form: each may take its own limit, and there may be thousands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class _Left:
    seconds: float
    limit: float


_left: ContextVar[_Left | None] = ContextVar("pattern_time", default=None)


@contextmanager
def limited_pattern_time(seconds: float) -> Iterator[None]:
    """Limit the time in which this context compiles and matches expressions; no further one is
    compiled or matched then."""
    token = _left.set(_Left(seconds, seconds))
    try:
        yield
    finally:
        _left.reset(token)


def why_no_pattern_time() -> str | None:
    """Return why no further expression may be compiled or matched in this context; None if it may."""
    left = _left.get()
    if left is None or left.seconds > 0:
        return None
    return f"is not checked, because those before it took the {left.limit:g} s that all expressions of a file may take"


@contextmanager
def counted_pattern_time() -> Iterator[None]:
    """Count the time of a block."""
    left = _left.get()
    if left is None:
        yield
        return
    began = time.thread_time()
    try:
        yield
    finally:
        left.seconds -= time.thread_time() - began
