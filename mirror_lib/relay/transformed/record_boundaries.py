"""Rows put off until all rows of their source record have come: between two source records a transaction may end.

A transform may make several rows of a record, and Spark may give them in several batches.

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mirror_lib.cluster.rows import Slice, number_and_codec


@dataclass(slots=True)
class _PutOff:
    """The rows of the newest record of a partition."""

    offset: int
    slices: list[Slice] = field(default_factory=list)


class WholeRecords:
    """Passes rows on as soon as their partition's next record has begun; rows of a partition come by its offsets."""

    def __init__(self, applies: Callable[[int], bool]) -> None:
        """Args:
        applies: whether a partition, by its number in the job, is to be treated so; others pass at once.
        """
        self._applies = applies
        self._put_off: dict[int, _PutOff] = {}

    def passed(self, slices: Iterable[Slice]) -> Iterator[Slice]:
        """What can be written of all that was given by now.

        Args:
            slices: of one batch.
        """
        waiting: dict[int, list[Slice]] = {}
        for each in slices:
            number, _ = number_and_codec(each.place)
            if self._applies(number):
                waiting.setdefault(number, []).append(each)
            else:
                yield each
        for number, rows in waiting.items():
            yield from self._partition(number, rows)

    def next_offset(self, number: int) -> int | None:
        """The source offset before which all rows of a partition were passed on; None when it has had none."""
        put_off = self._put_off.get(number)
        return None if put_off is None else put_off.offset

    def rest(self) -> Iterator[Slice]:
        """What is put off still, when no more rows come."""
        put_off, self._put_off = self._put_off, {}
        for each in put_off.values():
            yield from each.slices

    def _partition(self, number: int, slices: list[Slice]) -> Iterator[Slice]:
        newest = max(int(each.rows.offsets[-1]) for each in slices)
        put_off = self._put_off.get(number)
        if put_off is None or newest > put_off.offset:
            if put_off is not None:
                yield from put_off.slices
            put_off = self._put_off[number] = _PutOff(newest)
        for each in slices:
            before = int(np.searchsorted(each.rows.offsets, newest))
            if before:
                yield _part(each, 0, before)
            if before < len(each.rows):
                put_off.slices.append(_part(each, before, len(each.rows)))


def _part(rows: Slice, first: int, stop: int) -> Slice:
    return rows._replace(rows=rows.rows.part(first, stop))
