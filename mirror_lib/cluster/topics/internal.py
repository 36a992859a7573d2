"""The internal topics of a flow: positions on the target, offset syncs on either side, heartbeats."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import NamedTuple, Self

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.mm2_formats import Heartbeat, OffsetSync, RecordFormatError
from mirror_lib.cluster.topics.positions import (
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
from mirror_lib.cluster.topics.reader import NewRecord, RecordPlace, SmallTopicReader, SmallTopicWriter, TopicRecord
from mirror_lib.errors import TopicMissingError
from mirror_lib.offsets import OffsetRun, merge
from mirror_lib.topology import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Altered:
    """What a bare `{"offset": N}` has taken the place of: MirrorMaker 2 writes such records, and so do Connect's tools.

    MirrorMaker 2 continues where it finds a position, so none of its own records goes back.
    """

    #: The last position that this program has stored.
    before: Position
    #: The highest source offset that any position since has said.
    highest: int


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """A position and the record that holds it."""

    position: Position
    record: RecordPlace
    #: Of a record without the fields that this program adds, where it has stored a position before it.
    altered: Altered | None = None


@dataclass(frozen=True, slots=True)
class UnreadablePosition:
    """The newest record of a partition holds no position."""

    source: TopicPartition
    record: RecordPlace
    error: RecordFormatError


@dataclass(frozen=True, slots=True)
class PositionSnapshot:
    """The position topic as it was read: the position of every source partition that counts."""

    positions: Mapping[TopicPartition, StoredPosition] = field(default_factory=dict)
    #: By source partition; these partitions have no entry in `positions`.
    unreadable: Mapping[TopicPartition, UnreadablePosition] = field(default_factory=dict)
    #: The number of the last claim of each partition; the next one has one more.
    claims: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: Partitions whose newest record was overtaken and stored late. Compaction would keep it, and delete the one that
    #: counts, if any: such a record may also stand behind one that forgot the partition.
    buried: frozenset[TopicPartition] = frozenset()
    #: For every partition of the position topic, the first offset that was not read.
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    #: Parts of maps that no open position needs any more.
    unneeded_parts: frozenset[MapPart] = frozenset()


class PositionStore:
    """Positions of one flow, in Kafka Connect's topic for source offsets (`mm2-offsets.<source>.internal`).

    All records of one source partition stand in the same partition of the topic, in the order they were written:
    of two runs, the later one can always see the earlier one's record.
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
        source_alias: the source cluster's alias; other clusters' positions are not seen.
        connector: the name that MM2's source connector has or had.
        timeout: seconds that one call may take at most.
        """
        self.topic = topic
        self._keys = PositionKeys(source_alias, connector)
        self._reader = SmallTopicReader(connection, topic, timeout=timeout)
        self._writer = SmallTopicWriter(connection, topic, timeout=timeout)
        #: How many parts of the map of each claim are stored.
        self._parts: dict[tuple[TopicPartition, int], int] = {}

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()
        self._writer.close()

    def read_all(self) -> PositionSnapshot:
        """The newest position of every partition; a topic that does not exist yet holds none.

        Raises:
            MirrorError: the topic cannot be read to its end.
        """
        try:
            records, next_offsets = self._reader.read({})
        except TopicMissingError:
            return PositionSnapshot()
        return snapshot_of(self._keys, records, next_offsets)

    @contextmanager
    def reading_all(self) -> Iterator[Callable[[], PositionSnapshot]]:
        """Read as `read_all` beside what the block does; what it gives waits for the end.

        Over a distance connecting takes longer than all that is asked. A block that fails does not wait for it.
        """
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="positions") as beside:
            found = beside.submit(self.read_all)
            try:
                yield found.result
            except BaseException:
                if not found.done():
                    self._reader.give_up()
                raise

    def read_since(self, snapshot: PositionSnapshot) -> tuple[StoredPosition, ...]:
        """Every position written after a snapshot, those of one source partition in the order they were written.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: the topic cannot be read to its end.
        """
        records, _ = self._reader.read(snapshot.next_offsets)
        found = []
        parts: Mapping[MapPart, bytes] | None = None
        for record in records:
            source = self._keys.decode(record.key)
            if source is None:
                continue
            stored = _read(source, record)
            if isinstance(stored, StoredPosition):
                if stored.position.map_parts:
                    parts = _parts(self._keys, self._reader.read({})[0]) if parts is None else parts
                    # Parts of claims that have ended are deleted, and such positions are history.
                    stored = _with_parts(stored, parts, told=False)
                found.append(stored)
        return tuple(found)

    def write(self, positions: Iterable[Position]) -> tuple[RecordPlace, ...]:
        """Store positions and wait until all replicas in sync have them; returns where each one stands.

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
                # Before the positions that count on them.
                self._writer.write(parts)
            except BaseException:
                self._parts.clear()
                raise
        return self._writer.write(records)

    def discard_parts(self, parts: Iterable[MapPart]) -> None:
        """Delete parts of maps, and wait until that is acknowledged.

        Raises:
            MirrorError: a record was not acknowledged; others may have been.
        """
        keys = [self._keys.encode_part(part) for part in parts]
        if keys:
            partitions = self._writer.partitions()
            self._writer.write([NewRecord(partition_for(key, partitions), key, None) for key in keys])

    def forget(self, sources: Iterable[TopicPartition]) -> None:
        """Delete the positions of partitions (by records without a value), and wait until that is acknowledged.

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
    """What the records of a position topic come to.

    Args:
        keys: of the source cluster; records with other keys do not count.
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
    for key, written in by_key.items():
        source = keys.decode(key)
        if source is None:
            continue
        found = _standing_in_turn(source, written) or _standing(source, written)
        if isinstance(found.counting, StoredPosition):
            positions[source] = found.counting
        elif found.counting is not None:
            unreadable[source] = found.counting
        if found.claim is not None:
            claims[source] = found.claim
        if found.buried:
            buried.add(source)
    parts = _parts(keys, (record for written in by_key.values() for record in written))
    if parts:
        positions = {source: _with_parts(stored, parts) for source, stored in positions.items()}
    unneeded = frozenset(part for part in parts if not _needed(part, positions, claims))
    return PositionSnapshot(positions, unreadable, claims, frozenset(buried), next_offsets, unneeded)


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


def _needed(
    part: MapPart, positions: Mapping[TopicPartition, StoredPosition], claims: Mapping[TopicPartition, int]
) -> bool:
    """Whether a part may belong to a claim that is not closed, perhaps one that has begun since."""
    stored, claimed = positions.get(part.source), claims.get(part.source, 0)
    if part.claim != claimed:
        return part.claim > claimed
    return stored is not None and stored.position.state is PositionState.OPEN


def _with_parts(stored: StoredPosition, parts: Mapping[MapPart, bytes], *, told: bool = True) -> StoredPosition:
    """A position with its whole map, as far as the parts are there; `mirror map rebuild` finds the others."""
    position = stored.position
    if not position.map_parts:
        return stored
    wanted = [MapPart(position.source, position.claim or 0, number) for number in range(position.map_parts)]
    runs: list[OffsetRun] = []
    for part in wanted:
        try:
            runs += decode_part(parts[part])
        except (KeyError, RecordFormatError):
            level = logging.WARNING if told else logging.DEBUG
            _log.log(
                level, "part %d of the offset map of %s is missing: `mirror map rebuild`.", part.number, part.source
            )
    return replace(stored, position=replace(position, runs=merge((*runs, *position.runs)), map_parts=0))


class _Standing(NamedTuple):
    """What the records of one source partition come to."""

    counting: StoredPosition | UnreadablePosition | None = None
    #: None where no record was a position.
    claim: int | None = None
    #: The newest record does not count.
    buried: bool = False


def _standing(source: TopicPartition, records: Sequence[TopicRecord]) -> _Standing:
    counting: StoredPosition | UnreadablePosition | None = None
    claim: int | None = None
    buried = False
    for record in records:
        stored = _read(source, record)
        if stored is None:
            counting, buried = None, False
        elif _counts(stored, counting, claim or 0):
            counting, buried = _altering(stored, counting), False
        else:
            buried = counting is None or _content(stored) != _content(counting)
        if isinstance(stored, StoredPosition):
            claim = max(claim or 0, stored.position.claim or 0)
    return _Standing(counting, claim, buried)


def _altering(
    stored: StoredPosition | UnreadablePosition, before: StoredPosition | UnreadablePosition | None
) -> StoredPosition | UnreadablePosition:
    """A record, with what it takes the place of if it is a bare one behind a position of this program."""
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


def _standing_in_turn(source: TopicPartition, records: Sequence[TopicRecord]) -> _Standing | None:
    """As `_standing` where each of several records takes the place of the one before, as runs write them; else None.

    Only the newest one is then read, of two that most partitions of a large flow have.
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
    return _Standing(_read(source, records[-1]), number)


def _counts(
    stored: StoredPosition | UnreadablePosition, current: StoredPosition | UnreadablePosition | None, claimed: int
) -> bool:
    if isinstance(stored, UnreadablePosition):
        return True
    if isinstance(current, StoredPosition):
        return supersedes(stored.position, current.position, claimed)
    # Nothing readable stands before it; what was forgotten or damaged since its claim is not to come back.
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
    return StoredPosition(position, place) if position is not None else None


class OffsetSyncWriter:
    """Writes offset syncs as MM2 does: to partition 0, without timestamps or headers of their own."""

    def __init__(self, connection: Connection, topic: str, *, timeout: float = 30.0) -> None:
        self.topic = topic
        # A sync that stands there twice costs MM2 readers some history; half a second a round would cost more.
        self._writer = SmallTopicWriter(connection, topic, timeout=timeout, exactly_once=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def write(self, syncs: Iterable[OffsetSync]) -> tuple[RecordPlace, ...]:
        """Write syncs and wait for their acknowledgement.

        Args:
            syncs: those of one source partition by ascending upstream offset: a lower one makes every MM2 reader
                forget the partition's earlier syncs.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: a record was not acknowledged; others may have been.
        """
        self._writer.partitions()
        return self._writer.write(NewRecord(0, sync.key(), sync.value()) for sync in syncs)


class HeartbeatWriter:
    """Writes heartbeats as MM2 does: to partition 0, the record's time being that of the heartbeat."""

    def __init__(self, connection: Connection, topic: str, *, timeout: float = 30.0) -> None:
        self.topic = topic
        # A heartbeat that stands there twice says the same.
        self._writer = SmallTopicWriter(connection, topic, timeout=timeout, exactly_once=False)

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def write(self, heartbeats: Iterable[Heartbeat]) -> tuple[RecordPlace, ...]:
        """Write heartbeats and wait for their acknowledgement.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: a record was not acknowledged; others may have been.
        """
        self._writer.partitions()
        return self._writer.write(NewRecord(0, each.key(), each.value(), each.timestamp) for each in heartbeats)


@dataclass(frozen=True, slots=True)
class HeartbeatRecords:
    """Heartbeats at the end of a topic, in the order of each partition."""

    heartbeats: tuple[tuple[Heartbeat, RecordPlace], ...]
    #: Records that are no heartbeats, such as tombstones.
    unreadable: int = 0


def read_last_heartbeats(
    connection: Connection, topic: str, ends: Mapping[int, int], *, count: int = 1_000, timeout: float = 30.0
) -> HeartbeatRecords:
    """The heartbeats that stand at the last offsets of a topic; all of them where those hold none.

    Args:
        ends: the log end of every partition; a heartbeat a second makes a long topic before it is compacted.
        count: so many offsets of each partition are read.

    Raises:
        TopicMissingError: the topic does not exist.
        MirrorError: it cannot be read to its end.
    """
    reader = SmallTopicReader(connection, topic, timeout=timeout)
    start = {partition: max(0, end - count) for partition, end in ends.items()}
    try:
        found = _heartbeats(reader.read(start)[0])
        if not found.heartbeats and any(start.values()):
            found = _heartbeats(reader.read({})[0])
        return found
    finally:
        reader.close()


def _heartbeats(records: Iterable[TopicRecord]) -> HeartbeatRecords:
    heartbeats: list[tuple[Heartbeat, RecordPlace]] = []
    unreadable = 0
    for record in records:
        try:
            heartbeat = Heartbeat.decode(record.key, record.value)
        except RecordFormatError:
            unreadable += 1
        else:
            heartbeats.append((heartbeat, RecordPlace(record.partition, record.offset)))
    return HeartbeatRecords(tuple(heartbeats), unreadable)
