"""Work that makes very many values and drops few: Python's search for cycles only costs time there."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collections_paused() -> Iterator[None]:
    """A context, or a decorator, without the cyclic garbage collector.

    It looks at everything that lives again and again while hundreds of thousands of values are made, none of which is
    garbage: half of the time that a plan of 100,000 partitions took, or a file of hundreds of clusters. What is dropped
    without a cycle is freed at once.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
