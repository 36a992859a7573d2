"""Which ranges of a partition a sample compares. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass

from mirror_lib.topology.names import TopicPartition

#: Ranges of a partition, and the fewest offsets of all of them together: with fewer, finding the places costs the most.
_RANGES = 5
_FEWEST = 2_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A share of the records."""

    #: Above 0, at most 1.
    share: float
    #: The same seed chooses the same ranges of the same logs.
    seed: int

    def ranges(self, partition: TopicPartition, first: int, end: int) -> tuple[tuple[int, int], ...]:
        """Ranges of offsets [first, end) of a partition, ascending and apart: its end, and others by the seed.

        Faults of a replicator that was stopped are near the end.
        """
        offsets = end - first
        wanted = max(int(offsets * self.share), _FEWEST)
        if wanted >= offsets:
            return ((first, end),) if offsets else ()
        length = wanted // _RANGES
        chance = random.Random(f"{self.seed} {partition}")
        # The rest that is not compared is divided at random among the gaps before the ranges.
        gaps = sorted(chance.randint(0, offsets - length * _RANGES) for _ in range(_RANGES - 1))
        starts = [first + gap + length * number for number, gap in enumerate(gaps)]
        return (*((start, start + length) for start in starts), (end - length, end))
