"""Which fault comes when: from a seed, every kind once before any comes again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def endless(kinds: Sequence[_T], seed: int) -> Iterator[_T]:
    """Kinds in rounds; each round has all of them, in an order of its own."""
    source = random.Random(seed)
    while True:
        yield from source.sample(kinds, len(kinds))


def schedule(kinds: Sequence[_T], seed: int, faults: int | None) -> Iterator[_T]:
    """The first so many of them, or without an end."""
    return endless(kinds, seed) if faults is None else islice(endless(kinds, seed), faults)
