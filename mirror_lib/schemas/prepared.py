"""Schemas made ready for use, each once, however many threads ask for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Ready = TypeVar("_Ready")


class PreparedSchemas(Generic[_Ready]):
    """By their ids. What is made is never made again; what failed is tried again when it is asked for."""

    def __init__(self, make: Callable[[int], _Ready]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._ready: dict[int, _Ready] = {}

    def of(self, number: int) -> _Ready:
        """The schema of an id; raises as what makes it does."""
        with self._lock:
            known = self._ready.get(number)
        if known is None:
            # Not under the lock: a registry that is slow for one schema keeps nobody waiting for another.
            made = self._make(number)
            with self._lock:
                known = self._ready.setdefault(number, made)
        return known
