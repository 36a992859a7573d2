"""Hold rows back until all rows of their source record have come: a transaction may only end between source records.

A transform may make several rows of a record, and Spark may return them in several batches.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mirror_lib.features.transforms.rows.columns import Slice
from mirror_lib.features.transforms.rows.layout import number_and_codec


@dataclass(slots=True)
class _PutOff:
    """The rows of a partition's newest record."""

    offset: int
    slices: list[Slice] = field(default_factory=list)


class WholeRecords:
    """Passes rows on as soon as their partition's next record has begun; rows of a partition come by its offsets."""

    def __init__(self, applies: Callable[[int], bool]) -> None:
        """Args:
        applies: whether rows of a partition, by its number in the job, are held back; others pass at once.
        """
        self._applies = applies
        self._put_off: dict[int, _PutOff] = {}

    def release(self, slices: Iterable[Slice]) -> Iterator[Slice]:
        """The rows that can be written by now.

        Args:
            slices: slices of one batch.
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
        """The source offset before which all rows of a partition were passed on; None if it has had none."""
        put_off = self._put_off.get(number)
        return None if put_off is None else put_off.offset

    def rest(self) -> Iterator[Slice]:
        """The rows that are still held back, when no more rows come."""
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
