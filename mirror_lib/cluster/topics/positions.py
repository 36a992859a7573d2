"""The records that say how far a source partition is copied: Kafka Connect's source offsets, as MM2 writes them.

MM2 finds a position by the exact bytes of its key, so the bytes are built here and not by a JSON library. The value is
JSON with MM2's `offset` (the last copied source offset) and fields of our own beside it, which MM2 does not look at.
All of them are texts, numbers and booleans: Connect takes a value with a list or an object in it for none at all
(`OffsetUtils.validateFormat`), and MM2 would begin at the first record. So a list is JSON in a text.
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
from mirror_lib.offsets import OffsetRun, decode, encode
from mirror_lib.topology import TopicPartition

#: The first element of every key: in MM2's dedicated mode a connector is named after its class.
SOURCE_CONNECTOR = "MirrorSourceConnector"
#: `offset` of a partition of which nothing is copied yet; MM2 then starts at the beginning.
NOTHING_COPIED = -1
#: Bytes that the part of an offset map in a position may become; writers close a position long before.
_LARGEST_MAP = 16 * 1024 * 1024
_ACTION = "Find out which program writes to the position topic: only MirrorMaker 2 and its replacements may."


class PositionState(StrEnum):
    """Whether the run that wrote a position has ended in good order."""

    OPEN = "open"
    CLOSED = "closed"


_STATES = {state.value: state for state in PositionState}


class OmittedRange(NamedTuple):
    """Source offsets [first_offset, next_offset) that a run has left out by its flow's policy."""

    first_offset: int
    next_offset: int
    #: None where damage keeps the number hidden.
    records: int | None
    #: `MirrorError.reason` of what is wrong with the records there.
    cause: str
    quarantined: bool = False


class LastRecord(NamedTuple):
    """A record of the source that was copied last, or right before the last: by it a later run knows the log again."""

    offset: int
    #: Of the batch that it was in.
    batch_bytes: int
    #: CRC-32C of its timestamp, key, value and headers.
    checksum: int


class Route(NamedTuple):
    """A target partition that a transform sends records to, beside the one that its source partition goes to."""

    topic: str
    partition: int
    #: Where its log ended before anything of the run was written there.
    target_offset: int


class ClusterPair(NamedTuple):
    """The ids of the two clusters that a position is about; an alias may name another cluster tomorrow."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Position:
    """How far one source partition is copied. Where MM2 wrote it, all fields after `offset` are None."""

    topic: str
    partition: int
    #: Source offset of the last copied record, `NOTHING_COPIED` when there is none.
    offset: int
    #: The target partition's log end after that record.
    target_offset: int | None = None
    state: PositionState | None = None
    producer_id: int | None = None
    epoch: int | None = None
    run_id: str | None = None
    #: The source topic's id, to notice that it was deleted and created again.
    topic_id: str | None = None
    #: The source's leader epoch of the last copied batch: shows a log that was truncated and grew again (KIP-320).
    leader_epoch: int | None = None
    #: Which claim of the partition the record belongs to: one more than the last claim's number when it was opened.
    claim: int | None = None
    #: Of an open position: what this run has left out, since the ledger may not know it yet. Ascending.
    left_out: tuple[OmittedRange, ...] = ()
    #: The same for where its records stand on the target: the part of the offset map that the ledger may not have yet.
    runs: tuple[OffsetRun, ...] = ()
    #: How many records of their own hold the map before `runs`. Readers join them: 0 where all of the map is in `runs`.
    map_parts: int = 0
    #: Of an open position of a flow: the backfill that may be writing to the target partition in its place.
    backfill: str | None = None
    #: Of an open position: where else its run has written since.
    routes: tuple[Route, ...] = ()
    #: Of an open position: all that its run writes behind it is in transactions that store the next position too, so
    #: that who reads committed records alone finds nothing behind it.
    in_transactions: bool = False
    #: The topic on the target that holds the records, and its id. The id is None before Kafka 2.8 (KIP-516).
    target_topic: str | None = None
    target_topic_id: str | None = None
    clusters: ClusterPair | None = None
    #: Number of partitions that the source topic had when it was copied first: those behind them were added since.
    first_partitions: int | None = None
    #: Epoch milliseconds: when the copy was at the end of the source's log for the last time before this position, or
    #: began. Deletions behind the position may have been waiting for the copy since then.
    caught_up_at: int | None = None
    #: Shows a log that was restored from a snapshot and grew again: it may have the same leader epochs.
    last_record: LastRecord | None = None

    @property
    def source(self) -> TopicPartition:
        """The source partition that the position is about."""
        return TopicPartition(self.topic, self.partition)


def supersedes(later: Position, current: Position, claimed: int) -> bool:
    """Whether a position takes the place of one that stands before it in the topic.

    A run that was frozen, and wakes up when others have gone on, may store a position that was overtaken. The claims'
    numbers tell: each has one more than the claim before it, and the first record that closes a claim is its last.

    Args:
        later: the record that stands behind.
        current: what counts so far.
        claimed: the highest number of a claim so far.
    """
    if later.claim is None:
        # MirrorMaker 2 numbers nothing, and may only run when no run of ours does.
        return True
    return later.claim > claimed or (later.claim == claimed and current.state is PositionState.OPEN)


class MapPart(NamedTuple):
    """Which part of the map of a claim a record holds: `MAP_PART_RUNS` runs that no later acknowledgement changes."""

    source: TopicPartition
    claim: int
    number: int


#: Runs of an offset map in a record; they take some bytes each, and a broker takes a record of a megabyte.
MAP_PART_RUNS = 5_000


def split_map(position: Position) -> tuple[list[tuple[MapPart, tuple[OffsetRun, ...]]], Position]:
    """A position whose map is too long for one record: parts of the map, and the position with the rest of it."""
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
    """A part of a map as the JSON that goes into its record."""
    return json.dumps({"runs": base64.b64encode(encode(runs)).decode()}, separators=(",", ":")).encode()


def decode_part(value: bytes) -> tuple[OffsetRun, ...]:
    """A part of a map from its record's value.

    Raises:
        RecordFormatError: the value is none.
    """
    try:
        return _runs("runs", json.loads(value)["runs"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise RecordFormatError("the value is no part of an offset map", action=_ACTION) from None


class PositionKeys:
    """The keys of one source cluster's positions."""

    def __init__(self, source_alias: str, connector: str = SOURCE_CONNECTOR) -> None:
        """Args:
        source_alias: the source cluster's alias, as in the flow.
        connector: the connector's name; in a shared Connect cluster it is free text.
        """
        head = f'["{_json(connector)}",{{"cluster":"{_json(source_alias)}","partition":'
        self._head = head.encode()
        # Kafka allows no other characters in a topic's name, so nothing in it needs an escape.
        self._pattern = re.compile(re.escape(self._head) + rb'(0|[1-9][0-9]{0,9}),"topic":"([a-zA-Z0-9._-]{1,249})"}\]')

        # Connect keys records by connector: those of another name are nobody's positions, MirrorMaker 2's neither.
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
        """The part of a map whose key this is; None for any other."""
        match = self._map_pattern.fullmatch(key) if key is not None else None
        if match is None:
            return None
        return MapPart(TopicPartition(match[4].decode(), int(match[3])), int(match[1]), int(match[2]))

    def encode(self, source: TopicPartition) -> bytes:
        """The key's bytes: JSON without blanks, fields in the order of Java's HashMap."""
        return self._head + f'{source.partition},"topic":"{source.topic}"}}]'.encode()

    def decode(self, key: bytes | None) -> TopicPartition | None:
        """The source partition; None for keys of other connectors and clusters, and for those MM2 would not find."""
        match = self._pattern.fullmatch(key) if key is not None else None
        return TopicPartition(match[2].decode(), int(match[1])) if match else None


_DECODER = json.JSONDecoder()


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def encode_value(position: Position) -> bytes:
    """A position as the JSON that goes into its record; fields that are None are left out."""
    fields = {
        "offset": position.offset,
        "target_offset": position.target_offset,
        "state": position.state.value if position.state is not None else None,
        "producer_id": position.producer_id,
        "epoch": position.epoch,
        "run_id": position.run_id,
        "topic_id": position.topic_id,
        "leader_epoch": position.leader_epoch,
        "last_record": ":".join(map(str, position.last_record)) if position.last_record is not None else None,
        "target_topic": position.target_topic,
        "target_topic_id": position.target_topic_id,
        "source_cluster": position.clusters.source if position.clusters is not None else None,
        "target_cluster": position.clusters.target if position.clusters is not None else None,
        "first_partitions": position.first_partitions,
        "caught_up_at": position.caught_up_at,
        "claim": position.claim,
        "left_out": _list(position.left_out),
        "runs": base64.b64encode(encode(position.runs)).decode() if position.runs else None,
        "map_parts": position.map_parts or None,
        "backfill": position.backfill,
        "routes": _list(position.routes),
        "in_transactions": position.in_transactions or None,
    }
    kept = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()


def decode_value(source: TopicPartition, value: bytes | None) -> Position | None:
    """A position from its record's value; None when the record says to forget the partition.

    A missing, null or negative `offset` means that nothing is copied yet (mm2 `MirrorUtils.unwrapOffset`).

    Raises:
        RecordFormatError: the value is no position.
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
    # Of a flow with 100,000 partitions some hundred thousand records are read: what is not there costs nothing.
    fields = {
        name: read(name, value)
        for name, value in data.items()
        if value is not None and (read := _READERS.get(name)) is not None
    }
    fields["offset"] = max(fields.get("offset", NOTHING_COPIED), NOTHING_COPIED)
    clusters = fields.pop("source_cluster", None), fields.pop("target_cluster", None)
    if None not in clusters:
        fields["clusters"] = ClusterPair(*clusters)
    return Position(topic=source.topic, partition=source.partition, **fields)


#: What `encode_value` makes of a position of a run, unless that says more; numbers that surely have 64 bits.
_NUMBER = rb"(?:0|[1-9][0-9]{0,17})"
_USUAL_VALUE = re.compile(
    rb'\{"offset":(?:-1|%(n)b),"target_offset":%(n)b,"state":"(?:(open)|closed)"'
    rb'(?:,"producer_id":%(n)b)?(?:,"epoch":%(n)b)?(?:,"run_id":"[0-9A-Za-z_-]*")?(?:,"topic_id":"[0-9A-Za-z_-]*")?'
    rb'(?:,"leader_epoch":%(n)b)?(?:,"last_record":"%(n)b:%(n)b:%(n)b")?(?:,"target_topic":"[0-9A-Za-z._-]*")?(?:,"target_topic_id":"[0-9A-Za-z_-]*")?'
    rb'(?:,"source_cluster":"[0-9A-Za-z_-]*")?(?:,"target_cluster":"[0-9A-Za-z_-]*")?'
    rb'(?:,"first_partitions":%(n)b)?(?:,"caught_up_at":%(n)b)?,"claim":(%(n)b)\}' % {b"n": _NUMBER}
)


class Claim(NamedTuple):
    """What a record says about the claim that it belongs to."""

    number: int
    open: bool


def claim_of(value: bytes | None) -> Claim | None:
    """Which claim a record belongs to, without reading the rest of it; None when only `decode_value` can tell."""
    match = _USUAL_VALUE.fullmatch(value) if value is not None else None
    return Claim(int(match[2]), match[1] is not None) if match else None


def _integer(name: str, value: Any) -> int:
    # Java's own converter makes a double of 41.0, and MM2 then fails; JSON's true is no number either.
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise RecordFormatError(f"{name} is not an integer of 64 bits", action=_ACTION)
    return value


def _natural(name: str, value: Any) -> int:
    if type(value) is int and 0 <= value < 2**63:
        return value
    _integer(name, value)
    raise RecordFormatError(f"{name} is negative", action=_ACTION)


def _parse(value: bytes) -> Any:
    # What everybody writes needs no guess at its encoding.
    if value[:1] == b"{" and value[1:2] != b"\0":
        return _DECODER.decode(value.decode())
    return json.loads(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise RecordFormatError(f"{name} is not a text", action=_ACTION)
    return value


def _state(name: str, value: Any) -> PositionState:
    state = _STATES.get(_text(name, value))
    if state is None:
        raise RecordFormatError(f"state {value!r} is not known", action=_ACTION)
    return state


def _runs(name: str, value: Any) -> tuple[OffsetRun, ...]:
    try:
        return decode(base64.b64decode(_text(name, value), validate=True), largest=_LARGEST_MAP)
    except (ValueError, OffsetMapError):
        raise RecordFormatError(f"{name} is no offset map", action=_ACTION) from None


def _last_record(name: str, value: Any) -> LastRecord:
    numbers = _text(name, value).split(":")
    if len(numbers) != len(LastRecord._fields) or not all(re.fullmatch(r"[0-9]{1,18}", each) for each in numbers):
        raise RecordFormatError(f"{name} is not offset, size and checksum of a record", action=_ACTION)
    return LastRecord(*map(int, numbers))


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RecordFormatError(f"{name} is neither true nor false", action=_ACTION)
    return value


def _list(values: Sequence[object]) -> str | None:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False) if values else None


def _elements(name: str, value: Any) -> list[Any]:
    # Version 0.1.0 wrote lists as they are.
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
            raise RecordFormatError(f"{name} holds something else than ranges", action=_ACTION)
        first_offset, next_offset, records, cause, quarantined = each
        found = OmittedRange(
            _natural(name, first_offset),
            _natural(name, next_offset),
            None if records is None else _natural(name, records),
            _text(name, cause),
            quarantined is True,
        )
        if found.next_offset <= found.first_offset or (ranges and found.first_offset < ranges[-1].next_offset):
            raise RecordFormatError(f"{name} does not ascend", action=_ACTION)
        ranges.append(found)
    return tuple(ranges)


def _routes(name: str, value: Any) -> tuple[Route, ...]:
    routes: list[Route] = []
    for each in _elements(name, value):
        if not isinstance(each, list) or len(each) != len(Route._fields):
            raise RecordFormatError(f"{name} holds something else than target partitions", action=_ACTION)
        topic, partition, target_offset = each
        routes.append(Route(_text(name, topic), _natural(name, partition), _natural(name, target_offset)))
    return tuple(routes)


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
    "claim": _natural,
    "left_out": _ranges,
    "runs": _runs,
    "map_parts": _natural,
    "backfill": _text,
    "routes": _routes,
    "in_transactions": _flag,
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
