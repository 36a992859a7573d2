"""Sum up the rows of a task that go to partitions other than their own target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mirror_lib.features.transforms.rows.columns import RowColumns
from mirror_lib.features.transforms.rows.layout import Int64s
from mirror_lib.features.verify.model import NOT_COMPARED, UNEXPECTED, PartitionCheck, VerifyJob
from mirror_lib.features.verify.routed.findings import Place, RoutedFindings
from mirror_lib.features.verify.routed.multiset import Digests, Multiset, record_digests
from mirror_lib.topology.names import TopicPartition

#: In place of a span: the ledger does not know where records went.
_UNKNOWN = -3


class FoundRow(NamedTuple):
    """A source record that makes a row with a searched digest."""

    target: TopicPartition
    span: int
    digest: bytes
    source: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Ranges of source offsets, ascending, each with a number."""

    firsts: Int64s
    nexts: Int64s
    numbers: Int64s

    @classmethod
    def of(cls, ranges: Sequence[tuple[int, int, int]]) -> _Ranges:
        columns = np.array(sorted(ranges), dtype=np.int64).reshape(len(ranges), 3)
        return cls(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())

    def numbers_of(self, offsets: Int64s, otherwise: int) -> Int64s:
        """The number of the range that each offset lies in."""
        if not len(self.firsts):
            return np.full(len(offsets), otherwise, dtype=np.int64)
        at = np.maximum(np.searchsorted(self.firsts, offsets, side="right") - 1, 0)
        within = (offsets >= self.firsts[at]) & (offsets < self.nexts[at])
        return np.where(within, self.numbers[at], otherwise)


_NO_RANGES = _Ranges.of(())


@dataclass(slots=True)
class Elsewhere:
    """Separates routed rows from those that are compared by the map.

    Attributes:
        findings: of the rows so far.
    """

    job: VerifyJob
    findings: RoutedFindings = field(default_factory=RoutedFindings)
    _covered: dict[TopicPartition, _Ranges] = field(default_factory=dict)
    _known: dict[tuple[TopicPartition, TopicPartition], _Ranges] = field(default_factory=dict)
    _timed: dict[TopicPartition, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Group the known routes by source partition."""
        plan = self.job.routed
        self._timed = {check.target: check.timed for check in plan.checks}
        covered: dict[TopicPartition, list[tuple[int, int, int]]] = {}
        for share in plan.covered:
            covered.setdefault(share.source, []).append((share.source_first, share.source_next, UNEXPECTED))
        known: dict[tuple[TopicPartition, TopicPartition], list[tuple[int, int, int]]] = {}
        for route in plan.known:
            share = route.share
            known.setdefault((share.source, route.target), []).append(
                (share.source_first, share.source_next, route.span)
            )
        self._covered = {source: _Ranges.of(ranges) for source, ranges in covered.items()}
        self._known = {pair: _Ranges.of(ranges) for pair, ranges in known.items()}

    def without(self, check: PartitionCheck, rows: RowColumns, batch: pa.RecordBatch) -> RowColumns:
        """Return the rows that go to the partition's own target; sum up all others.

        Args:
            rows: of one source partition.
            batch: the same rows, with topic and partition.

        Raises:
            InexactRowError: a row cannot be a record.
        """
        own = rows.part(0, 0)
        for target, part in _by_target(check.target, rows, batch):
            if target == check.target:
                own = part
                if (check.source, target) not in self._known:
                    continue
            self._sum_up(check, target, part)
        return own

    def find(
        self,
        check: PartitionCheck,
        rows: RowColumns,
        batch: pa.RecordBatch,
        wanted: Mapping[Place, frozenset[bytes]],
    ) -> Iterator[FoundRow]:
        """Yield the rows among these with searched digests."""
        targets = {target for target, _ in wanted}
        for target, part in _by_target(check.target, rows, batch):
            if target not in targets:
                continue
            numbers = self._numbers(check.source, target, part.offsets).tolist()
            digests = np.ascontiguousarray(self._digests(target, part)).view("V16").ravel().tolist()
            for offset, number, digest in zip(part.offsets.tolist(), numbers, digests, strict=True):
                if digest in wanted.get((target, number), ()):
                    yield FoundRow(target, number, digest, check.source, offset)

    def _sum_up(self, check: PartitionCheck, target: TopicPartition, rows: RowColumns) -> None:
        numbers = self._numbers(check.source, target, rows.offsets)
        if (numbers == NOT_COMPARED).all():
            return
        digests = self._digests(target, rows)
        doubtful = np.zeros(len(rows), dtype=np.bool_)
        for gap in check.known_gaps:
            doubtful |= (rows.offsets >= gap.first_offset) & (rows.offsets < gap.next_offset)
        for number in np.unique(numbers).tolist():
            of_number = numbers == number
            if number == _UNKNOWN:
                place = target, number
                self.findings.unknown[place] = self.findings.unknown.get(place, 0) + int(of_number.sum())
            elif number != NOT_COMPARED:
                _put(self.findings.made, (target, number), digests[of_number & ~doubtful])
                _put(self.findings.doubtful, (target, number), digests[of_number & doubtful])
            if number in (UNEXPECTED, _UNKNOWN):
                self.findings.senders.add((target, check.source))

    def _numbers(self, source: TopicPartition, target: TopicPartition, offsets: Int64s) -> Int64s:
        known = self._known.get((source, target), _NO_RANGES).numbers_of(offsets, _UNKNOWN)
        covered = self._covered.get(source, _NO_RANGES).numbers_of(offsets, _UNKNOWN)
        return np.where(known == _UNKNOWN, covered, known)

    def _digests(self, target: TopicPartition, rows: RowColumns) -> Digests:
        tails = rows.tails()
        content, ends = tails.content, tails.ends.tolist()
        parts = [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        times = tails.times.tolist() if self._timed.get(target, True) else None
        return record_digests(self.job.digest_key, times, parts)


def _put(multisets: dict[Place, Multiset], place: Place, digests: Digests) -> None:
    if len(digests):
        multisets.setdefault(place, Multiset()).add(digests)


def _by_target(
    own: TopicPartition, rows: RowColumns, batch: pa.RecordBatch
) -> Iterator[tuple[TopicPartition, RowColumns]]:
    """Yield the rows by destination, each group in the order of its rows."""
    topics, partitions = (batch.column(batch.schema.get_field_index(name)) for name in ("topic", "partition"))
    if topics.null_count == partitions.null_count == len(rows):
        yield own, rows
        return
    groups: dict[tuple[str | None, int | None], list[int]] = {}
    for number, where in enumerate(zip(topics.to_pylist(), partitions.to_pylist(), strict=True)):
        groups.setdefault(where, []).append(number)
    by_target: dict[TopicPartition, list[int]] = {}
    for (topic, partition), numbers in groups.items():
        # A column that is not set keeps its default.
        target = TopicPartition(
            own.topic if topic is None else topic, own.partition if partition is None else partition
        )
        by_target.setdefault(target, []).extend(numbers)
    for target, numbers in by_target.items():
        yield target, rows if len(numbers) == len(rows) else rows.take(sorted(numbers))
