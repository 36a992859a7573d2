"""The internal topics of a flow: positions on the target, offset-syncs on either side, heartbeats."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.kept_heartbeats import KeptHeartbeats
from mirror_lib.cluster.topics.kept_records import KeptRecords
from mirror_lib.cluster.topics.mm2_formats import Heartbeat, OffsetSync, RecordFormatError
from mirror_lib.cluster.topics.position_format import (
    NOTHING_COPIED,
    SOURCE_CONNECTOR,
    MapPart,
    Position,
    PositionKeys,
    PositionState,
    claim_of,
    decode_part,
    decode_value,
    encode_part,
    encode_value,
    partition_for,
    split_map,
    supersedes,
)
from mirror_lib.cluster.topics.reader import LeaderlessPartitions, SmallTopicReader, TopicContent
from mirror_lib.cluster.topics.records import NewRecord, RecordPlace, TopicRecord
from mirror_lib.cluster.topics.writer import InternalTopicWriter, SmallTopicWriter
from mirror_lib.errors import MirrorError, TopicMissingError
from mirror_lib.offsets.runs import OffsetRun, merge
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: Offsets of a partition, at its end, that are read for heartbeats until there is one; then the whole topic.
_LAST_HEARTBEATS = (1_000, 20_000)
_HEARTBEATS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Altered:
    """The position that a bare `{"offset": N}` has replaced. MirrorMaker 2 and Connect's tools write such records.

    MirrorMaker 2 continues at an existing position, so its own records never go back.
    """

    #: The last position that this program has stored.
    before: Position
    #: The highest source offset of all positions since.
    highest: int


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """A position and the record that holds it."""

    position: Position
    record: RecordPlace
    #: Set if the record lacks this program's fields, but follows a position that has them.
    altered: Altered | None = None
    #: Epoch milliseconds; None if unknown.
    stored_at: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class UnreadablePosition:
    """The latest record of a partition is not a valid position."""

    source: TopicPartition
    record: RecordPlace
    error: RecordFormatError


@dataclass(frozen=True, slots=True)
class PositionSnapshot:
    """The content of the position topic: the current position of every source partition."""

    positions: Mapping[TopicPartition, StoredPosition] = field(default_factory=dict)
    #: By source partition; these partitions have no entry in `positions`.
    unreadable: Mapping[TopicPartition, UnreadablePosition] = field(default_factory=dict)
    #: The number of the last claim of each partition; the next one is greater by one.
    claims: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: Partitions whose latest record was superseded before it was stored. Compaction would keep it, and delete the
    #: current one, if any: such a record may also follow one that deleted the position.
    buried: frozenset[TopicPartition] = frozenset()
    #: Partitions whose position was deleted, by this program or in Connect's way.
    reset: frozenset[TopicPartition] = frozenset()
    #: For every partition of the position topic, the first offset that was not read.
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    #: Parts of maps that no open position needs any more.
    unneeded_parts: frozenset[MapPart] = frozenset()
    #: Partitions of the position topic that were not read; None if all were.
    unread: LeaderlessPartitions | None = None


class PositionStore:
    """Positions of one flow, in Kafka Connect's topic for source offsets (`mm2-offsets.<source>.internal`).

    All records of one source partition are in the same partition of the topic, in the order they were written: of two
    runs, the later one can always see the earlier one's record.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        source_alias: str,
        *,
        connector: str = SOURCE_CONNECTOR,
        timeout: float = 30.0,
    ) -> None:
        """Args:
        connection: of the target cluster.
        source_alias: the source cluster's alias; positions of other clusters are ignored.
        connector: the present or former name of MM2's source connector.
        timeout: maximum seconds of one call.
        """
        self.topic = topic
        self._keys = PositionKeys(source_alias, connector)
        self._reader = SmallTopicReader(connection, topic, timeout=timeout)
        self._writer = SmallTopicWriter(connection, topic, timeout=timeout)
        #: Keys that are known to be of this flow.
        self._own: set[bytes | None] = set()
        #: The number of stored parts of the map, by claim.
        self._parts: dict[tuple[TopicPartition, int], int] = {}

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._writer.close()

    def read_all(self) -> PositionSnapshot:
        """The current position of every partition; empty if the topic does not exist yet.

        Raises:
            MirrorError: the topic cannot be read to its end.
        """
        try:
            found = self._read({})
        except TopicMissingError:
            return PositionSnapshot()
        return snapshot_of(self._keys, found.records, found.next_offsets)

    def _read(self, start: Mapping[int, int], leaderless_seconds: float | None = None) -> TopicContent:
        """The records of this flow: those of others in the topic take no memory."""
        return self._reader.read(start, KeptRecords(self._is_own), leaderless_seconds=leaderless_seconds)

    def _is_own(self, key: bytes | None, _: bytes | None) -> bool:
        if key in self._own:
            return True
        is_own = self._keys.decode(key) is not None or self._keys.decode_part(key) is not None
        if is_own:
            self._own.add(key)
        return is_own

    def read_led(self, seconds: float) -> PositionSnapshot:
        """As `read_all`, without partitions of the topic that have no leader for some seconds.

        Only for readers that write no positions: `why_unknown` has the partitions whose position is not known then.
        """
        try:
            found = self._read({}, seconds)
        except TopicMissingError:
            return PositionSnapshot()
        return replace(snapshot_of(self._keys, found.records, found.next_offsets), unread=found.unread)

    def why_unknown(self, snapshot: PositionSnapshot, source: TopicPartition) -> MirrorError | None:
        """The error of a source partition whose position a snapshot does not have; None if it has it."""
        unread = snapshot.unread
        if unread is None or partition_for(self._keys.encode(source), unread.of) not in unread.numbers:
            return None
        return unread.error

    @contextmanager
    def reading_all(self) -> Iterator[Callable[[], PositionSnapshot]]:
        """Read as `read_all` in parallel with the block; the yielded function waits for the result.

        On a high-latency cluster connecting takes longer than all requests. A block that fails does not wait for it.
        """
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="positions") as pool:
            found = pool.submit(self.read_all)
            try:
                yield found.result
            except BaseException:
                if not found.done():
                    self._reader.give_up()
                raise

    def read_since(self, snapshot: PositionSnapshot) -> tuple[StoredPosition, ...]:
        """Every position written after a snapshot; those of one source partition in the order they were written.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: the topic cannot be read to its end.
        """
        found = []
        parts: Mapping[MapPart, bytes] | None = None
        for record in self._read(snapshot.next_offsets).records:
            source = self._keys.decode(record.key)
            if source is None:
                continue
            stored = _read(source, record)
            if isinstance(stored, StoredPosition):
                if stored.position.map_parts:
                    parts = _parts(self._keys, self._read({}).records) if parts is None else parts
                    # Parts of finished claims are deleted, and such positions are history.
                    stored = _with_parts(stored, parts, warn=False)
                found.append(stored)
        return tuple(found)

    def write(self, positions: Iterable[Position]) -> tuple[RecordPlace, ...]:
        """Store positions and wait until all in-sync replicas have them; return the place of each.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: a record was not acknowledged; others may have been.
        """
        wanted = list(positions)
        if not wanted:
            return ()
        partitions = self._writer.partitions()
        records, parts = [], []
        for whole in wanted:
            split, position = split_map(whole)
            claim = position.source, position.claim or 0
            for part, runs in split[self._parts.get(claim, 0) :]:
                key = self._keys.encode_part(part)
                parts.append(NewRecord(partition_for(key, partitions), key, encode_part(runs)))
            if split:
                self._parts[claim] = len(split)
            key = self._keys.encode(position.source)
            records.append(NewRecord(partition_for(key, partitions), key, encode_value(position)))
        if parts:
            try:
                # Before the positions that depend on them.
                self._writer.write(parts)
            except BaseException:
                self._parts.clear()
                raise
        return self._writer.write(records)

    def discard_parts(self, parts: Iterable[MapPart]) -> None:
        """Delete parts of maps, and wait for the acknowledgement.

        Raises:
            MirrorError: a record was not acknowledged; others may have been.
        """
        keys = [self._keys.encode_part(part) for part in parts]
        if keys:
            partitions = self._writer.partitions()
            self._writer.write([NewRecord(partition_for(key, partitions), key, None) for key in keys])

    def forget(self, sources: Iterable[TopicPartition]) -> None:
        """Delete the positions of partitions (by tombstones), and wait for the acknowledgement.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: a record was not acknowledged; others may have been.
        """
        keys = [self._keys.encode(source) for source in sources]
        if keys:
            partitions = self._writer.partitions()
            self._writer.write([NewRecord(partition_for(key, partitions), key, None) for key in keys])


def snapshot_of(
    keys: PositionKeys, records: Iterable[TopicRecord], next_offsets: Mapping[int, int]
) -> PositionSnapshot:
    """Build a snapshot from the records of a position topic.

    Args:
        keys: of the source cluster; records with other keys are ignored.
        records: those of one source partition in the order they were written.
        next_offsets: as in the snapshot.
    """
    by_key: dict[bytes | None, list[TopicRecord]] = {}
    for record in records:
        by_key.setdefault(record.key, []).append(record)
    positions: dict[TopicPartition, StoredPosition] = {}
    unreadable: dict[TopicPartition, UnreadablePosition] = {}
    claims: dict[TopicPartition, int] = {}
    buried: set[TopicPartition] = set()
    reset: set[TopicPartition] = set()
    for key, written in by_key.items():
        source = keys.decode(key)
        if source is None:
            continue
        found = _standing_in_turn(source, written) or _effective_position(source, written)
        if isinstance(found.counting, StoredPosition):
            positions[source] = found.counting
        elif found.counting is not None:
            unreadable[source] = found.counting
        else:
            reset.add(source)
        if found.claim is not None:
            claims[source] = found.claim
        if found.buried:
            buried.add(source)
    parts = _parts(keys, (record for written in by_key.values() for record in written))
    if parts:
        positions = {source: _with_parts(stored, parts) for source, stored in positions.items()}
    unneeded = frozenset(part for part in parts if not _is_needed(part, positions, claims))
    return PositionSnapshot(
        positions=positions,
        unreadable=unreadable,
        claims=claims,
        buried=frozenset(buried),
        reset=frozenset(reset),
        next_offsets=next_offsets,
        unneeded_parts=unneeded,
    )


def _parts(keys: PositionKeys, records: Iterable[TopicRecord]) -> dict[MapPart, bytes]:
    """The parts of maps among the records of a position topic."""
    found: dict[MapPart, bytes] = {}
    for record in records:
        part = keys.decode_part(record.key)
        if part is None:
            continue
        if record.value is None:
            found.pop(part, None)
        else:
            found[part] = record.value
    return found


def _is_needed(
    part: MapPart, positions: Mapping[TopicPartition, StoredPosition], claims: Mapping[TopicPartition, int]
) -> bool:
    """True if a part may belong to a claim that is not closed, possibly one that was made since."""
    stored, claimed = positions.get(part.source), claims.get(part.source, 0)
    if part.claim != claimed:
        return part.claim > claimed
    return stored is not None and stored.position.state is PositionState.OPEN


def _with_parts(stored: StoredPosition, parts: Mapping[MapPart, bytes], *, warn: bool = True) -> StoredPosition:
    """A position with its whole map, if all parts exist; `mirror map rebuild` restores missing ones."""
    position = stored.position
    if not position.map_parts:
        return stored
    wanted = [MapPart(position.source, position.claim or 0, number) for number in range(position.map_parts)]
    runs: list[OffsetRun] = []
    for part in wanted:
        try:
            runs += decode_part(parts[part])
        except (KeyError, RecordFormatError):
            level = logging.WARNING if warn else logging.DEBUG
            _log.log(
                level, "part %d of the offset map of %s is missing: run `mirror map rebuild`.", part.number, part.source
            )
    return replace(stored, position=replace(position, runs=merge((*runs, *position.runs)), map_parts=0))


class _Effective(NamedTuple):
    """The result of the records of one source partition."""

    counting: StoredPosition | UnreadablePosition | None = None
    #: None if no record was a position.
    claim: int | None = None
    #: True if the latest record does not count.
    buried: bool = False


def _effective_position(source: TopicPartition, records: Sequence[TopicRecord]) -> _Effective:
    counting: StoredPosition | UnreadablePosition | None = None
    claim: int | None = None
    buried = False
    for record in records:
        stored = _read(source, record)
        if stored is None:
            counting, buried = None, False
        elif _counts(stored, counting, claim or 0):
            counting, buried = _with_altered(stored, counting), False
        else:
            buried = counting is None or _content(stored) != _content(counting)
        if isinstance(stored, StoredPosition):
            claim = max(claim or 0, stored.position.claim or 0)
    return _Effective(counting, claim, buried)


def _with_altered(
    stored: StoredPosition | UnreadablePosition, before: StoredPosition | UnreadablePosition | None
) -> StoredPosition | UnreadablePosition:
    """The record; with the replaced position if it is a bare one after a position of this program."""
    if not isinstance(stored, StoredPosition) or not isinstance(before, StoredPosition):
        return stored
    if stored.position.target_offset is not None or stored.position.offset == NOTHING_COPIED:
        return stored
    known = before.altered
    if known is not None:
        return replace(stored, altered=replace(known, highest=max(known.highest, before.position.offset)))
    if before.position.target_offset is None:
        return stored
    return replace(stored, altered=Altered(before.position, before.position.offset))


def _standing_in_turn(source: TopicPartition, records: Sequence[TopicRecord]) -> _Effective | None:
    """As `_effective_position` if each of several records supersedes the one before, as runs write them; else None.

    Then only the latest record is parsed; most partitions of a large flow have two.
    """
    if len(records) == 1:
        return None
    number, is_open = 0, False
    for record in records:
        claim = claim_of(record.value)
        # As `supersedes`.
        if claim is None or not (claim.number > number or (claim.number == number and is_open)):
            return None
        number, is_open = claim
    return _Effective(_read(source, records[-1]), number)


def _counts(
    stored: StoredPosition | UnreadablePosition, current: StoredPosition | UnreadablePosition | None, claimed: int
) -> bool:
    if isinstance(stored, UnreadablePosition):
        return True
    if isinstance(current, StoredPosition):
        return supersedes(stored.position, current.position, claimed)
    # There is no readable record before it; a position that was deleted or damaged after its claim must not come back.
    claim = stored.position.claim
    return claim is None or claim > claimed or (claim == claimed and isinstance(current, UnreadablePosition))


def _content(stored: StoredPosition | UnreadablePosition) -> Position | None:
    return stored.position if isinstance(stored, StoredPosition) else None


def _read(source: TopicPartition, record: TopicRecord) -> StoredPosition | UnreadablePosition | None:
    place = RecordPlace(record.partition, record.offset)
    try:
        position = decode_value(source, record.value)
    except RecordFormatError as error:
        return UnreadablePosition(source, place, error)
    return StoredPosition(position, place, stored_at=record.timestamp_ms) if position is not None else None


class OffsetSyncWriter(InternalTopicWriter):
    """Writes offset-syncs as MM2 does: to partition 0, without explicit timestamps or headers.

    A duplicate sync costs MM2's readers some history.
    """

    def write(self, syncs: Iterable[OffsetSync]) -> tuple[RecordPlace, ...]:
        """Write syncs and wait for their acknowledgement.

        Args:
            syncs: those of one source partition by ascending upstream offset: a lower one makes every MM2 reader drop
                the partition's earlier syncs.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: a record was not acknowledged; others may have been.
        """
        return self._write(NewRecord(0, sync.key(), sync.value()) for sync in syncs)


class HeartbeatWriter(InternalTopicWriter):
    """Writes heartbeats as MM2 does: to partition 0, with the heartbeat's time as the record's timestamp.

    A duplicate does no harm.
    """

    def __enter__(self) -> Self:
        self._writer.start()
        return super().__enter__()

    def write(self, heartbeats: Iterable[Heartbeat]) -> tuple[RecordPlace, ...]:
        """Write heartbeats and wait for their acknowledgement.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: a record was not acknowledged; others may have been.
        """
        return self._write(NewRecord(0, each.key(), each.value(), each.timestamp) for each in heartbeats)


@dataclass(frozen=True, slots=True)
class HeartbeatRecords:
    """Heartbeats at the end of a topic, in the order of each partition."""

    heartbeats: tuple[tuple[Heartbeat, RecordPlace], ...]
    #: Records that are not heartbeats, such as tombstones.
    unreadable: int = 0
    #: Heartbeats of further pairs than are kept.
    beyond: int = 0


def read_last_heartbeats(connection: Connection, topic: str, ends: Mapping[int, int]) -> HeartbeatRecords:
    """The newest heartbeat of each pair, and of all, at the last offsets of a topic; of all offsets if there is none.

    Args:
        ends: log end offset of every partition; with a heartbeat per second the topic is long before compaction.

    Raises:
        TopicMissingError: the topic does not exist.
        MirrorError: the topic cannot be read to its end.
    """
    reader = SmallTopicReader(connection, topic, timeout=_HEARTBEATS_SECONDS)
    try:
        for last in (*_LAST_HEARTBEATS, None):
            start = {} if last is None else {number: max(0, end - last) for number, end in ends.items()}
            kept = KeptHeartbeats()
            found = reader.read(start, kept, skip_oversized=True)
            if found.records or not any(start.values()):
                break
    finally:
        reader.close()
    heartbeats = [
        (Heartbeat.decode(record.key, record.value), RecordPlace(record.partition, record.offset))
        for record in found.records
    ]
    return HeartbeatRecords(tuple(heartbeats), found.unwanted, kept.beyond)
