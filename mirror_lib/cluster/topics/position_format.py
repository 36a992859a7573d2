"""Position records: how far a source partition is copied, as Kafka Connect's source offsets in MM2's format.

MM2 finds a position by the exact bytes of its key, so the bytes are built here and not by a JSON library. The value is
JSON with MM2's `offset` (the last copied source offset) and this project's own fields, which MM2 ignores. All of them
are texts, numbers and booleans: Connect treats a value with a list or an object in it as missing
(`OffsetUtils.validateFormat`), and MM2 would start at the first record. So a list is JSON in a text.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from mirror_lib.cluster.topics.mm2_formats import RecordFormatError
from mirror_lib.errors import OffsetMapError
from mirror_lib.offsets.runs import OffsetRun, decode, encode
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition

#: The first element of every key: in MM2's dedicated mode a connector is named after its class.
SOURCE_CONNECTOR = "MirrorSourceConnector"
#: `offset` of a partition without copied records; MM2 then starts at the beginning.
NOTHING_COPIED = -1
#: Maximum decoded size of an offset map's part in a position; writers close a position long before.
_LARGEST_MAP = 16 * 1024 * 1024
_ACTION = "Find out which program writes to the position topic: only MirrorMaker 2 and its replacements may."


class PositionState(StrEnum):
    """Whether the run that wrote a position has ended properly."""

    OPEN = "open"
    CLOSED = "closed"


_STATES = {state.value: state for state in PositionState}


class OmittedRange(NamedTuple):
    """Source offsets [first_offset, next_offset) that a run has skipped by its flow's policy."""

    first_offset: int
    next_offset: int
    #: None if the damage hides the number.
    records: int | None
    #: `MirrorError.reason` of the records' fault.
    cause: str
    quarantined: bool = False


class Route(NamedTuple):
    """A target partition that a transform sends records to, in addition to its source partition's own target."""

    topic: str
    partition: int
    #: Its log end offset before the run wrote to it.
    target_offset: int


class ClusterPair(NamedTuple):
    """The ids of the two clusters that a position belongs to; an alias may name another cluster later."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Position:
    """The position of one source partition. If MM2 wrote it, all fields after `offset` are None."""

    topic: str
    partition: int
    #: Source offset of the last copied record; `NOTHING_COPIED` if there is none.
    offset: int
    #: The target partition's log end offset after that record.
    target_offset: int | None = None
    state: PositionState | None = None
    producer_id: int | None = None
    epoch: int | None = None
    run_id: str | None = None
    #: The source topic's id, to detect that it was recreated.
    topic_id: str | None = None
    #: The source's leader epoch of the last copied batch: detects a log that was truncated and has grown again
    #: (KIP-320).
    leader_epoch: int | None = None
    #: The claim that the record belongs to: its number is the last claim's number plus one.
    claim: int | None = None
    #: Of an open position: ranges that this run has skipped, since the ledger may not have them yet. Ascending.
    skipped: tuple[OmittedRange, ...] = ()
    #: Of an open position: the part of the offset map that the ledger may not have yet.
    runs: tuple[OffsetRun, ...] = ()
    #: Number of separate records with the map before `runs`. Readers join them: 0 if the whole map is in `runs`.
    map_parts: int = 0
    #: Of an open position of a flow: the backfill that may be writing to the target partition instead.
    backfill: str | None = None
    #: Of an open position: other target partitions to which its run has written since.
    routes: tuple[Route, ...] = ()
    #: Of an open position: all records that its run writes after it are in transactions that also store the next
    #: position, so that a read-committed consumer finds no records after it.
    in_transactions: bool = False
    #: Of an open position with `mirror.offsets = same`: the writers of markers (`hole_writer_id`) that may have begun a
    #: transaction on the target partition.
    hole_writers: tuple[int, ...] = ()
    #: The topic on the target that holds the records, and its id. The id is None before Kafka 2.8 (KIP-516).
    target_topic: str | None = None
    target_topic_id: str | None = None
    clusters: ClusterPair | None = None
    #: The source topic's number of partitions at the first copy: later partitions were added since.
    first_partitions: int | None = None
    #: Epoch milliseconds: when the copy was at the source's log end for the last time before this position, or started.
    #: Deletions after the position may have waited for the copy since then.
    caught_up_at: int | None = None
    #: Detects a log that was restored from a snapshot and has grown again: it may have the same leader epochs.
    last_record: LastRecord | None = None
    #: The same for the target's log: a copied record there, with its offset and batch on the target.
    target_record: LastRecord | None = None
    #: What names the copy from one source log to one target log: the run or decision that began it. What is stored
    #: about the partition is true of one copy. None if MM2 or an earlier version began it. See `name_of_copy`.
    copy: str | None = None

    @property
    def source(self) -> TopicPartition:
        """The source partition of the position."""
        return TopicPartition(self.topic, self.partition)


#: What the name of a copy begins with whose records have the offsets that they have at the source.
_SAME_OFFSETS = "kept-offsets-"


def name_of_copy(run_id: str, *, same_offsets: bool) -> str:
    """Return the name of a copy that a run begins."""
    return f"{_SAME_OFFSETS}{run_id}" if same_offsets else run_id


def next_copy(before: str | None, name: str, *, same_offsets: bool = False) -> str:
    """Return the name of another copy in the same target log, whose records there keep their offsets.

    Args:
        before: the copy so far; None if it is not known, or in another target log.
        name: what begins the other one.
        same_offsets: the flow's setting, which counts without a copy so far.
    """
    return name_of_copy(name, same_offsets=same_offsets if before is None else has_same_offsets(before))


def has_same_offsets(copy: str | None) -> bool:
    """Return whether the records of a copy of this name have the offsets that they have at the source."""
    return copy is not None and copy.startswith(_SAME_OFFSETS)


def supersedes(later: Position, current: Position, claimed: int) -> bool:
    """Return true if a position replaces an earlier one in the topic.

    A run that was suspended, and resumes after other runs, may store an outdated position. Claim numbers detect it:
    each is greater by one than the one before, and the first record that closes a claim is its last.

    Args:
        later: the later record.
        current: the position that counts so far.
        claimed: the highest claim number so far.
    """
    if later.claim is None:
        # MirrorMaker 2 has no claim numbers, and may only run when no run of this project does.
        return True
    return later.claim > claimed or (later.claim == claimed and current.state is PositionState.OPEN)


class MapPart(NamedTuple):
    """A part of a claim's map in a record: `MAP_PART_RUNS` runs that no later acknowledgement changes."""

    source: TopicPartition
    claim: int
    number: int


#: Runs of an offset map in a record; they take some bytes each, and brokers accept records of about a megabyte.
MAP_PART_RUNS = 5_000


def split_map(position: Position) -> tuple[list[tuple[MapPart, tuple[OffsetRun, ...]]], Position]:
    """Split a position whose map is too long for one record: parts of the map, and the position with the rest."""
    count = max(len(position.runs) - 1, 0) // MAP_PART_RUNS
    parts = [
        (
            MapPart(position.source, position.claim or 0, number),
            position.runs[number * MAP_PART_RUNS : (number + 1) * MAP_PART_RUNS],
        )
        for number in range(count)
    ]
    return parts, replace(position, runs=position.runs[count * MAP_PART_RUNS :], map_parts=count)


def encode_part(runs: Sequence[OffsetRun]) -> bytes:
    """Encode a part of a map as the JSON value of its record."""
    return json.dumps({"runs": base64.b64encode(encode(runs)).decode()}, separators=(",", ":")).encode()


def decode_part(value: bytes) -> tuple[OffsetRun, ...]:
    """Decode a part of a map from its record's value.

    Raises:
        RecordFormatError: the value is not a part of a map.
    """
    try:
        return _runs("runs", json.loads(value)["runs"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise RecordFormatError("the value is not a part of an offset map", action=_ACTION) from None


class PositionKeys:
    """The keys of one source cluster's positions."""

    def __init__(self, source_alias: str, connector: str = SOURCE_CONNECTOR) -> None:
        """Args:
        source_alias: the source cluster's alias, as in the flow.
        connector: the connector's name; in a shared Connect cluster it is free text.
        """
        head = f'["{_json(connector)}",{{"cluster":"{_json(source_alias)}","partition":'
        self._head = head.encode()
        # Kafka allows no other characters in topic names, so none needs an escape.
        self._pattern = re.compile(re.escape(self._head) + rb'(0|[1-9][0-9]{0,9}),"topic":"([a-zA-Z0-9._-]{1,249})"}\]')

        # Connect keys records by connector: those with another name are not positions, not even for MirrorMaker 2.
        self._map_head = f'["{_json(connector)}#map",{{"claim":'.encode()
        self._map_rest = f',"cluster":"{_json(source_alias)}","part":'.encode()
        self._map_pattern = re.compile(
            re.escape(self._map_head) + rb"([0-9]{1,18})" + re.escape(self._map_rest) + rb"([0-9]{1,9})"
            rb',"partition":([0-9]{1,10}),"topic":"([a-zA-Z0-9._-]{1,249})"}\]'
        )

    def encode_part(self, part: MapPart) -> bytes:
        """The key of a part of a map."""
        place = f'{part.number},"partition":{part.source.partition},"topic":"{part.source.topic}"}}]'
        return self._map_head + str(part.claim).encode() + self._map_rest + place.encode()

    def decode_part(self, key: bytes | None) -> MapPart | None:
        """The part of a map for a key; None for any other key."""
        match = self._map_pattern.fullmatch(key) if key is not None else None
        if match is None:
            return None
        return MapPart(TopicPartition(match[4].decode(), int(match[3])), int(match[1]), int(match[2]))

    def encode(self, source: TopicPartition) -> bytes:
        """The key's bytes: JSON without blanks, fields in the order of Java's HashMap."""
        return self._head + f'{source.partition},"topic":"{source.topic}"}}]'.encode()

    def decode(self, key: bytes | None) -> TopicPartition | None:
        """The source partition; None for keys of other connectors and clusters, and for keys that MM2 does not find."""
        match = self._pattern.fullmatch(key) if key is not None else None
        return TopicPartition(match[2].decode(), int(match[1])) if match else None


_DECODER = json.JSONDecoder()


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def encode_value(position: Position) -> bytes:
    """Encode a position as the JSON value of its record, without fields that are None."""
    fields = {
        "offset": position.offset,
        "target_offset": position.target_offset,
        "state": position.state.value if position.state is not None else None,
        "producer_id": position.producer_id,
        "epoch": position.epoch,
        "run_id": position.run_id,
        "topic_id": position.topic_id,
        "leader_epoch": position.leader_epoch,
        "last_record": _encode_record(position.last_record),
        "target_record": _encode_record(position.target_record),
        "target_topic": position.target_topic,
        "target_topic_id": position.target_topic_id,
        "source_cluster": position.clusters.source if position.clusters is not None else None,
        "target_cluster": position.clusters.target if position.clusters is not None else None,
        "first_partitions": position.first_partitions,
        "caught_up_at": position.caught_up_at,
        "copy": position.copy,
        "claim": position.claim,
        "left_out": _list(position.skipped),
        "runs": base64.b64encode(encode(position.runs)).decode() if position.runs else None,
        "map_parts": position.map_parts or None,
        "backfill": position.backfill,
        "routes": _list(position.routes),
        "in_transactions": position.in_transactions or None,
        "hole_writers": _list(position.hole_writers),
    }
    kept = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()


def decode_value(source: TopicPartition, value: bytes | None) -> Position | None:
    """Decode a position from its record's value; None for a tombstone.

    A missing, null or negative `offset` means that nothing is copied yet (mm2 `MirrorUtils.unwrapOffset`).

    Raises:
        RecordFormatError: the value is not a position.
    """
    if value is None:
        return None
    try:
        data = _parse(value)
    except (ValueError, RecursionError):
        raise RecordFormatError("the value is not JSON", action=_ACTION) from None
    if data is None:
        return None
    if not isinstance(data, dict):
        raise RecordFormatError("the value is not a JSON object", action=_ACTION)
    # For a flow with 100,000 partitions, several hundred thousand records are read: missing fields cost nothing.
    fields = {
        name: read(name, value)
        for name, value in data.items()
        if value is not None and (read := _READERS.get(name)) is not None
    }
    fields["offset"] = max(fields.get("offset", NOTHING_COPIED), NOTHING_COPIED)
    if "left_out" in fields:
        fields["skipped"] = fields.pop("left_out")
    clusters = fields.pop("source_cluster", None), fields.pop("target_cluster", None)
    if None not in clusters:
        fields["clusters"] = ClusterPair(*clusters)
    return Position(topic=source.topic, partition=source.partition, **fields)


#: The common form of `encode_value` for a position of a run; numbers that certainly fit into 64 bits.
_NUMBER = rb"(?:0|[1-9][0-9]{0,17})"
_USUAL_VALUE = re.compile(
    rb'\{"offset":(?:-1|%(n)b),"target_offset":%(n)b,"state":"(?:(open)|closed)"'
    rb'(?:,"producer_id":%(n)b)?(?:,"epoch":%(n)b)?(?:,"run_id":"[0-9A-Za-z_-]*")?(?:,"topic_id":"[0-9A-Za-z_-]*")?'
    rb'(?:,"leader_epoch":%(n)b)?(?:,"last_record":"%(n)b:%(n)b:%(n)b")?'
    rb'(?:,"target_record":"%(n)b:%(n)b:%(n)b")?'
    rb'(?:,"target_topic":"[0-9A-Za-z._-]*")?(?:,"target_topic_id":"[0-9A-Za-z_-]*")?'
    rb'(?:,"source_cluster":"[0-9A-Za-z_-]*")?(?:,"target_cluster":"[0-9A-Za-z_-]*")?'
    rb'(?:,"first_partitions":%(n)b)?(?:,"caught_up_at":%(n)b)?(?:,"copy":"[0-9A-Za-z_-]*")?'
    rb',"claim":(%(n)b)\}' % {b"n": _NUMBER}
)


class Claim(NamedTuple):
    """The claim of a record."""

    number: int
    open: bool


def claim_of(value: bytes | None) -> Claim | None:
    """The claim of a record, without parsing the rest; None if only `decode_value` can determine it."""
    match = _USUAL_VALUE.fullmatch(value) if value is not None else None
    return Claim(int(match[2]), match[1] is not None) if match else None


def _integer(name: str, value: Any) -> int:
    # Java's converter turns 41.0 into a double, and MM2 then fails; JSON's true is not a number either.
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise RecordFormatError(f"{name} is not an integer of 64 bits", action=_ACTION)
    return value


def _natural(name: str, value: Any) -> int:
    if type(value) is int and 0 <= value < 2**63:
        return value
    _integer(name, value)
    raise RecordFormatError(f"{name} is negative", action=_ACTION)


def _parse(value: bytes) -> Any:
    # The usual encoding needs no detection.
    if value[:1] == b"{" and value[1:2] != b"\0":
        return _DECODER.decode(value.decode())
    return json.loads(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise RecordFormatError(f"{name} is not a string", action=_ACTION)
    if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
        # JSON has escapes for it, UTF-8 has nothing: the position could not be written again.
        raise RecordFormatError(f"{name} contains half of a surrogate pair", action=_ACTION)
    return value


def _state(name: str, value: Any) -> PositionState:
    state = _STATES.get(_text(name, value))
    if state is None:
        raise RecordFormatError(f"unknown state {value!r}", action=_ACTION)
    return state


def _runs(name: str, value: Any) -> tuple[OffsetRun, ...]:
    try:
        return decode(base64.b64decode(_text(name, value), validate=True), largest=_LARGEST_MAP)
    except (ValueError, OffsetMapError):
        raise RecordFormatError(f"{name} is not an offset map", action=_ACTION) from None


def _encode_record(record: LastRecord | None) -> str | None:
    return None if record is None else ":".join(map(str, record))


def _last_record(name: str, value: Any) -> LastRecord:
    numbers = _text(name, value).split(":")
    if len(numbers) != len(LastRecord._fields) or not all(re.fullmatch(r"[0-9]{1,18}", each) for each in numbers):
        raise RecordFormatError(f"{name} is not offset, size and checksum of a record", action=_ACTION)
    return LastRecord(*map(int, numbers))


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RecordFormatError(f"{name} is not a boolean", action=_ACTION)
    return value


def _list(values: Sequence[object]) -> str | None:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False) if values else None


def _elements(name: str, value: Any) -> list[Any]:
    # Version 0.1.0 wrote lists as JSON lists.
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list):
        raise RecordFormatError(f"{name} is not a list", action=_ACTION)
    return value


def _ranges(name: str, value: Any) -> tuple[OmittedRange, ...]:
    ranges: list[OmittedRange] = []
    for each in _elements(name, value):
        if not isinstance(each, list) or len(each) != len(OmittedRange._fields):
            raise RecordFormatError(f"{name} contains something other than ranges", action=_ACTION)
        first_offset, next_offset, records, cause, quarantined = each
        found = OmittedRange(
            _natural(name, first_offset),
            _natural(name, next_offset),
            None if records is None else _natural(name, records),
            _text(name, cause),
            quarantined is True,
        )
        if found.next_offset <= found.first_offset or (ranges and found.first_offset < ranges[-1].next_offset):
            raise RecordFormatError(f"{name} is not in ascending order", action=_ACTION)
        ranges.append(found)
    return tuple(ranges)


def _routes(name: str, value: Any) -> tuple[Route, ...]:
    routes: list[Route] = []
    for each in _elements(name, value):
        if not isinstance(each, list) or len(each) != len(Route._fields):
            raise RecordFormatError(f"{name} contains something other than target partitions", action=_ACTION)
        topic, partition, target_offset = each
        routes.append(Route(_text(name, topic), _natural(name, partition), _natural(name, target_offset)))
    return tuple(routes)


def _numbers(name: str, value: Any) -> tuple[int, ...]:
    return tuple(_natural(name, each) for each in _elements(name, value))


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "offset": _integer,
    "target_offset": _natural,
    "state": _state,
    "producer_id": _natural,
    "epoch": _natural,
    "run_id": _text,
    "topic_id": _text,
    "leader_epoch": _natural,
    "last_record": _last_record,
    "target_record": _last_record,
    "copy": _text,
    "claim": _natural,
    "left_out": _ranges,
    "runs": _runs,
    "map_parts": _natural,
    "backfill": _text,
    "routes": _routes,
    "in_transactions": _flag,
    "hole_writers": _numbers,
    "target_topic": _text,
    "target_topic_id": _text,
    "source_cluster": _text,
    "target_cluster": _text,
    "first_partitions": _natural,
    "caught_up_at": _natural,
}


_WORD = struct.Struct("<I")
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash as an unsigned number (Java `org.apache.kafka.common.utils.Utils.murmur2`, which is signed)."""
    length = len(data)
    whole = length & ~3
    h = (_SEED ^ length) & _MASK
    for (word,) in _WORD.iter_unpack(data[:whole]):
        k = word * _MULTIPLIER & _MASK
        h = (h * _MULTIPLIER ^ (k ^ k >> 24) * _MULTIPLIER) & _MASK
    if whole != length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    h = (h ^ h >> 13) * _MULTIPLIER & _MASK
    return h ^ h >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """The partition that Java's producer chooses for a key (`BuiltInPartitioner.partitionForKey`)."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
