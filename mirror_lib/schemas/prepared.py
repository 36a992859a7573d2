"""Parsed schemas, each parsed once for all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Ready = TypeVar("_Ready")


class PreparedSchemas(Generic[_Ready]):
    """Parsed schemas by id. A result is kept; a failure is retried on the next request."""

    def __init__(self, make: Callable[[int], _Ready]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._ready: dict[int, _Ready] = {}

    def of(self, number: int) -> _Ready:
        """The schema of an id; raises what `make` raises."""
        with self._lock:
            known = self._ready.get(number)
        if known is None:
            # Not under the lock: a slow response for one schema must not block others.
            made = self._make(number)
            with self._lock:
                known = self._ready.setdefault(number, made)
        return known
