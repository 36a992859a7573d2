"""A few records of a source topic, for previews. Read only: no position, claim or group is changed.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.config.first_start import parse_time
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.errors import ConfigurationError, CorruptBatchError, MirrorError, OversizedBatchError, Where
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.read import read_arrow
from mirror_lib.features.transforms.arrow.rows import NO_TIMESTAMP_TYPE, InexactRowError
from mirror_lib.features.transforms.preview.preview import Headers, RecordPlace, SourceRecord
from mirror_lib.features.transforms.rows.layout import (
    READ_SCHEMA,
    SOURCE_COLUMN,
    number_and_codec,
    place_of,
    with_source,
)
from mirror_lib.records.header import Codec
from mirror_lib.sync.admins import source_admin
from mirror_lib.topology.names import TopicPartition

#: Factor by which the range grows if the end of a partition holds fewer records than offsets.
_FURTHER = 4
_MICROSECONDS = 1000
#: A record keeps all records of its part in memory, and there may be many partitions.
_LIMITS = DecodeLimits(part=64 * 1024)
#: Maximum bytes of a sample's rows, in addition to one row: a preview holds them several times.
MOST_BYTES = 32 * 1024 * 1024


class Edge(StrEnum):
    """An end of the log."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class SampleStart:
    """The start of a sample: one of the three is set.

    Attributes:
        edge: the first records of the log, or the last.
        offset: an offset of a single partition.
        timestamp: epoch milliseconds: start at the first record that is not older.
    """

    edge: Edge | None = None
    offset: int | None = None
    timestamp: int | None = None

    @classmethod
    def parse(cls, text: str) -> SampleStart:
        """Parse `earliest`, `latest`, an offset, or an ISO time; without a zone it is UTC.

        Raises:
            ConfigurationError: the text is none of them.
        """
        if text in tuple(Edge):
            return cls(edge=Edge(text))
        if text.isdecimal():
            return cls(offset=int(text))
        try:
            return cls(timestamp=parse_time(text))
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{text!r} is not a valid start of a sample.",
                action="Use earliest, latest, an offset, or a time such as 2026-01-31T00:00:00Z.",
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Records as rows of `layout.READ_SCHEMA`, by partition and offset; their place is the number of the partition.

    Attributes:
        unreadable: records that cannot become rows, and damaged batches by their first offset.
        is_cut: True if records are missing because the sample would have become too large.
    """

    rows: pa.Table
    unreadable: Mapping[RecordPlace, MirrorError]
    is_cut: bool = False

    def records(self) -> tuple[SourceRecord, ...]:
        """The rows as values."""
        columns = {name: self.rows.column(name) for name in READ_SCHEMA.names}
        times = columns["timestamp"].cast(pa.int64()).to_pylist()
        return tuple(
            SourceRecord(
                RecordPlace(partition, offset),
                key,
                value,
                headers_of(headers),
                None if kind == NO_TIMESTAMP_TYPE or time is None else time // _MICROSECONDS,
            )
            for partition, offset, key, value, headers, time, kind in zip(
                *(columns[name].to_pylist() for name in ("partition", "offset", "key", "value", "headers")),
                times,
                columns["timestampType"].to_pylist(),
                strict=True,
            )
        )


def headers_of(found: Sequence[Mapping[str, object]] | None) -> Headers:
    """The headers of an Arrow row as Python values; for Kafka, null and no headers are the same."""
    return tuple((each["key"], each["value"]) for each in found or ())  # type: ignore[misc]


def places_of(rows: pa.Table) -> list[RecordPlace]:
    """The source places of the records in a sample's rows."""
    source = rows.column(SOURCE_COLUMN).combine_chunks()
    pairs = zip(source.field(0).to_pylist(), source.field(1).to_pylist(), strict=True)
    return [RecordPlace(number_and_codec(place)[0], offset) for place, offset in pairs]


def read_sample(flow: FlowConfig, topic: str, start: SampleStart, *, most: int, partition: int | None = None) -> Sample:
    """Records of a topic, spread evenly over its partitions.

    Args:
        most: maximum number of records; fewer if the topic does not have more, or if they exceed `MOST_BYTES`.
        partition: read only this partition.

    Raises:
        ConfigurationError: the partition does not exist, or does not hold the offset.
        MirrorError: the source does not respond, or has no such topic.
    """
    with source_admin(flow) as admin:
        ranges = _ranges(admin, flow, _partitions(admin, topic, partition), start)
    if not ranges:
        return Sample(READ_SCHEMA.empty_table(), {})
    return asyncio.run(_read(flow, ranges[:most], most, last=start.edge is Edge.LATEST))


class _Range(NamedTuple):
    """Offsets [first, end) of a partition."""

    source: TopicPartition
    first: int
    end: int


def _partitions(admin: ClusterAdmin, topic: str, only: int | None) -> list[TopicPartition]:
    found = admin.describe_topics([topic])
    if topic in found.errors:
        raise found.errors[topic]
    numbers = [each.partition for each in found[topic].partitions]
    if only is not None and only not in numbers:
        raise ConfigurationError(
            f"the topic has {len(numbers)} partitions, but no partition {only}.",
            where=Where(cluster=admin.cluster, topic=topic),
            action="Use one of its partitions, or omit --partition.",
        )
    return [TopicPartition(topic, number) for number in numbers if only in (None, number)]


def _ranges(
    admin: ClusterAdmin, flow: FlowConfig, partitions: Sequence[TopicPartition], start: SampleStart
) -> list[_Range]:
    """The ranges of partitions from the start on; empty ranges are omitted."""
    firsts = _offsets(admin.list_offsets(partitions, OffsetSpec.EARLIEST))
    is_committed = flow.isolation_level is IsolationLevel.READ_COMMITTED
    ends = _offsets(admin.list_offsets(partitions, OffsetSpec.LAST_STABLE if is_committed else OffsetSpec.LATEST))
    if start.timestamp is not None:
        found = _offsets(admin.offsets_at(dict.fromkeys(partitions, start.timestamp)))
        # -1: all records are older.
        firsts = {each: ends[each] if offset < 0 else max(offset, firsts[each]) for each, offset in found.items()}
    elif start.offset is not None:
        _check_offset(admin.cluster, firsts, ends, start.offset)
        firsts = dict.fromkeys(partitions, start.offset)
    return [_Range(each, firsts[each], ends[each]) for each in partitions if firsts[each] < ends[each]]


def _offsets(facts: Mapping[TopicPartition, OffsetFact]) -> dict[TopicPartition, int]:
    for fact in facts.values():
        if fact.error is not None:
            raise fact.error
    return {each: fact.offset for each, fact in facts.items()}


def _check_offset(
    cluster: str, firsts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], offset: int
) -> None:
    if len(firsts) != 1:
        raise ConfigurationError(
            f"an offset needs a partition: the topic has {len(firsts)}.", action="Add --partition."
        )
    ((source, first),) = firsts.items()
    if not first <= offset < ends[source]:
        raise ConfigurationError(
            f"the partition does not contain offset {offset}: its first offset is {first}, its log end offset "
            f"{ends[source]}.",
            where=Where(cluster=cluster, topic=source.topic, partition=source.partition),
            action="Use an offset in that range, earliest or latest.",
        )


async def _read(flow: FlowConfig, ranges: Sequence[_Range], most: int, *, last: bool) -> Sample:
    async with open_clients(Connection.from_settings(flow.clients.data_consumer)) as (client,):
        room = _Room(MOST_BYTES, MOST_BYTES // len(ranges))
        partitions = [_PartitionSample(client, each, flow, room, last=last) for each in ranges]
        count = -(-most // len(partitions))
        while True:
            for each in partitions:
                await each.read(count)
            if room.left <= 0 or count >= most or sum(len(each.found) for each in partitions) >= most:
                break
            # Some have fewer records than their share.
            count = min(2 * count, most)
        fair = shares([len(each.found) for each in partitions], most)
        taken = [row for each, share in zip(partitions, fair, strict=True) for row in each.take(share)]
    rows = [row for row in taken if isinstance(row, pa.RecordBatch)]
    unreadable = {each.place: each.error for each in taken if isinstance(each, _Unreadable)}
    is_cut = len(taken) < most and any(each.is_cut for each in partitions)
    return Sample(pa.Table.from_batches(rows, READ_SCHEMA), unreadable, is_cut)


def shares(held: Sequence[int], most: int) -> list[int]:
    """Number of records to take of each partition: as even as possible, at most `most` in total."""
    found = [0] * len(held)
    left = most
    while left and any(share < count for share, count in zip(found, held, strict=True)):
        for number, count in enumerate(held):
            if left and found[number] < count:
                found[number] += 1
                left -= 1
    return found


class _Unreadable(NamedTuple):
    """A record, or a batch by its first offset, that cannot become a row."""

    place: RecordPlace
    error: MirrorError


@dataclass(slots=True)
class _Room:
    """Bytes for the rows of all partitions.

    Attributes:
        left: for all partitions; below zero by one row at most.
        share: for each partition.
    """

    left: int
    share: int


class _PartitionSample:
    """Some records of one partition: the first or the last ones of a range."""

    def __init__(self, client: RawClient, range_: _Range, flow: FlowConfig, room: _Room, *, last: bool) -> None:
        self._range = range_
        self._room = room
        self._used = 0
        self._last = last
        self._is_committed = flow.isolation_level is IsolationLevel.READ_COMMITTED
        settings: CopySettings = flow.copy_settings
        self._reader = PartitionReader(client, range_.source, settings, read_committed=self._is_committed)
        #: One entry per record.
        self.found: deque[pa.RecordBatch | _Unreadable] = deque()
        self._is_all = False
        #: Further records would exceed the room.
        self.is_cut = False

    async def read(self, count: int) -> None:
        """Read `count` records, or all if there are fewer."""
        if self._is_all or len(self.found) >= count:
            return
        if not self._last:
            await self._first(self._range.first, count)
            self._is_all = len(self.found) < count
            return
        width = count
        while True:
            first = max(self._range.first, self._range.end - width)
            await self._first(first, count)
            self._is_all = first == self._range.first or self.is_cut
            if self._is_all or len(self.found) >= count:
                return
            width *= _FURTHER

    def take(self, count: int) -> list[pa.RecordBatch | _Unreadable]:
        """The first or the last `count` records that were read."""
        first = len(self.found) - count if self._last else 0
        return list(islice(self.found, first, first + count))

    def _take(self, row: pa.RecordBatch | _Unreadable, count: int) -> bool:
        """Keep a row; return False if no later one can be kept."""
        room, size = self._room, _size(row)
        if not self._last and self._used and (self._used + size > room.share or room.left < size):
            self.is_cut = True
            return False
        if room.left <= 0 and not self.found:
            self.is_cut = True
            return False
        self.found.append(row)
        self._count(size)
        while self._last and len(self.found) > 1 and (self._used > room.share or len(self.found) > count):
            # The last records of the range are wanted, and it is read forwards.
            self.is_cut = self.is_cut or len(self.found) <= count
            self._count(-_size(self.found.popleft()))
        return self._last or len(self.found) < count

    def _count(self, size: int) -> None:
        self._used += size
        self._room.left -= size

    async def _first(self, first: int, count: int) -> None:
        """Take records from an offset on: the first `count`, or the last ones before the end of the range."""
        self._count(-self._used)
        self.found.clear()
        offset, source = first, self._range.source
        while offset < self._range.end:
            response = await self._reader.fetch(offset)
            before = offset
            try:
                for part in read_arrow(
                    memoryview(response.records),
                    response.aborted,
                    topic=source.topic,
                    partition=source.partition,
                    start=offset,
                    end=self._range.end,
                    read_committed=self._is_committed,
                    limits=_LIMITS,
                ):
                    rows = with_source(part.records, place_of(source.partition, Codec.NONE))
                    offset = part.next_offset
                    if not all(self._take(rows.slice(row, 1), count) for row in range(rows.num_rows)):
                        return
            except InexactRowError as error:
                # The error names the record; later records may be readable.
                at = offset if error.where.offset is None else error.where.offset
                if not self._take(_Unreadable(RecordPlace(source.partition, at), error), count):
                    return
                offset = at + 1
            except (CorruptBatchError, OversizedBatchError) as error:
                self._take(_Unreadable(RecordPlace(source.partition, offset), error), count)
                return
            if offset == before:
                # The end of the readable records.
                return


def _size(row: pa.RecordBatch | _Unreadable) -> int:
    return row.nbytes if isinstance(row, pa.RecordBatch) else 0
