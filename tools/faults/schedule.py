"""The order of faults: from a seed, every kind once before any is repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def endless(kinds: Sequence[_T], seed: int) -> Iterator[_T]:
    """Yield kinds in rounds; each round has all of them, in its own order."""
    source = random.Random(seed)
    while True:
        yield from source.sample(kinds, len(kinds))


def schedule(kinds: Sequence[_T], seed: int, faults: int | None) -> Iterator[_T]:
    """Yield this many of them, or without an end."""
    return endless(kinds, seed) if faults is None else islice(endless(kinds, seed), faults)
