"""Produce and other requests that carry or measure data, except Fetch, encoded and decoded here.

Payloads are not copied into the request.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mirror_lib.cluster.protocol.fields import (
    EMPTY_ARRAY,
    NO_TAGS,
    TOPIC_ID_BYTES,
    FieldReader,
    encode_compact,
    encode_string,
    encode_varint,
    read_varint,
    skip_tags,
)
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.topology.names import TopicPartition

#: API keys, and versions that Kafka 2.4 is the first to support; every supported broker is newer.
PRODUCE, PRODUCE_VERSION = 0, 7
#: The first with the ids of topics in place of their names (Kafka 4.1, KIP-516): a recreated topic has another id. Not
#: for batches in transactions: since version 12 (KIP-890) a late request would begin one.
PRODUCE_BY_ID_VERSION = 13
DESCRIBE_LOG_DIRS, LOG_DIRS_VERSION = 35, 1
LIST_OFFSETS, LIST_OFFSETS_VERSION = 2, 5
#: The first version that can be asked for local offsets (KIP-405); brokers without it have no remote storage.
LIST_LOCAL_OFFSETS_VERSION = 8
OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION = 23, 3
#: The smallest request: every broker supports its first version, and responds without a look-up.
API_VERSIONS, API_VERSIONS_VERSION = 18, 0

#: Acks, timeout, number of topics; partition and size of its batch.
_PRODUCE_HEAD, _PRODUCE_PARTITION = struct.Struct(">hii"), struct.Struct(">ii")
#: Partition, error code, base offset and log start; the append time is skipped.
_PRODUCED_PARTITION = struct.Struct(">ihq8xq")
#: The same by id, with the bytes after it if nothing was rejected.
_PRODUCED_BY_ID = struct.Struct(">ihq8xq3s")
#: No rejected records, no message, no tagged fields.
_NOTHING_REFUSED = EMPTY_ARRAY + NO_TAGS + NO_TAGS
#: Partition, bytes, lag, and whether it is being moved.
_REPLICA = struct.Struct(">iqqb")
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_NO_STRING = _INT16.pack(-1)


class ProducedPartition(NamedTuple):
    """The broker's result for one batch: its offset, or an error."""

    topic: str
    partition: int
    error_code: int
    base_offset: int
    log_start: int


def by_topic(partitions: Sequence[Any]) -> dict[str, list[Any]]:
    """Tuples that begin with a topic, grouped by topic."""
    grouped: dict[str, list[Any]] = {}
    for item in partitions:
        grouped.setdefault(item[0], []).append(item)
    return grouped


def read_string(view: memoryview, position: int) -> tuple[str, int]:
    """A text and the position after it.

    Raises:
        ValueError: its length is negative or extends beyond the end, or it is not valid UTF-8.
    """
    (length,) = _INT16.unpack_from(view, position)
    position += 2
    if not 0 <= length <= len(view) - position:
        raise ValueError(f"a text of {length} bytes does not fit it")
    return str(view[position : position + length], "utf-8"), position + length


@response_of("Produce")
def parse_produce(view: memoryview) -> list[ProducedPartition]:
    """Parse a Produce response."""
    position = 0
    (topics,) = _INT32.unpack_from(view, position)
    position += 4
    result = []
    for _ in range(topics):
        topic, position = read_string(view, position)
        (count,) = _INT32.unpack_from(view, position)
        position += 4
        begin, position = position, position + max(count, 0) * _PRODUCED_PARTITION.size
        if position > len(view):
            raise ValueError(f"{count} partitions do not fit it")
        result += [ProducedPartition(topic, *each) for each in _PRODUCED_PARTITION.iter_unpack(view[begin:position])]
    return result


@response_of("Produce")
def parse_produce_by_id(view: memoryview, names: Mapping[bytes, str]) -> tuple[list[ProducedPartition], int]:
    """Parse a Produce response of `PRODUCE_BY_ID_VERSION`.

    Returns:
        The results, and for how long the broker reads nothing from the connection (`produce_throttle_ms`).
    """
    position = skip_tags(view, 0)
    topics, position = read_varint(view, position)
    result = []
    for _ in range(topics - 1):
        topic = names.get(bytes(view[position : position + TOPIC_ID_BYTES]))
        if topic is None:
            raise ValueError("a topic was not written to")
        count, position = read_varint(view, position + TOPIC_ID_BYTES)
        for _ in range(count - 1):
            *numbers, behind = _PRODUCED_BY_ID.unpack_from(view, position)
            position += _PRODUCED_BY_ID.size
            if behind != _NOTHING_REFUSED:
                position = _skip_refusal(view, position - len(_NOTHING_REFUSED))
            result.append(ProducedPartition(topic, *numbers))
        position = skip_tags(view, position)
    (throttle_ms,) = _INT32.unpack_from(view, position)
    return result, throttle_ms


def _skip_refusal(view: memoryview, position: int) -> int:
    """The position after a partition's remaining fields: rejected records, a message, tagged fields."""
    response = FieldReader(view, flexible=True)
    response.skip(position)
    for _ in range(response.count()):
        _record, _message = response.int32(), response.string()
        response.skip_tags()
    _message = response.string()
    response.skip_tags()
    return response.position


@response_of("Produce")
def produce_throttle_ms(view: memoryview) -> int:
    """Milliseconds during which the broker reads nothing from the connection because of a quota; 0: not throttled."""
    (milliseconds,) = _INT32.unpack_from(view, len(view) - _INT32.size)
    return int(milliseconds)


@response_of("DescribeLogDirs")
def parse_log_dirs(view: memoryview) -> list[tuple[str, int, int]]:
    """Parse a DescribeLogDirs response: topic, partition and bytes of every replica that is not being moved."""
    reader = FieldReader(view, flexible=False)
    reader.skip(4)
    result = []
    for _ in range(reader.count()):
        reader.skip(2)
        _path = reader.string()
        for _ in range(reader.count()):
            topic = reader.string()
            for _ in range(reader.count()):
                partition, size, _lag, is_future = reader.numbers(_REPLICA)
                if not is_future:
                    result.append((topic, partition, size))
    return result


def encode_produce(
    batches: Sequence[tuple[str, int, Buffer]], *, timeout_ms: int, transactional_id: str | None = None
) -> list[Buffer]:
    """A Produce request with acks=all; at most one batch per partition.

    Args:
        transactional_id: of the producer whose open transaction contains all the batches (KIP-98).
    """
    grouped: dict[str, list[Buffer]] = {}
    for topic, partition, payload in batches:
        if (pieces := grouped.get(topic)) is None:
            pieces = grouped[topic] = []
        pieces += (_PRODUCE_PARTITION.pack(partition, len(payload)), payload)
    head = _NO_STRING if transactional_id is None else encode_string(transactional_id)
    parts: list[Buffer] = [head + _PRODUCE_HEAD.pack(-1, timeout_ms, len(grouped))]
    for topic, pieces in grouped.items():
        parts.append(encode_string(topic) + _INT32.pack(len(pieces) // 2))
        parts += pieces
    return parts


def encode_produce_by_id(
    batches: Sequence[tuple[str, int, Buffer]], topic_ids: Mapping[str, bytes], *, timeout_ms: int
) -> list[Buffer]:
    """The same for `PRODUCE_BY_ID_VERSION`, outside of transactions; each topic has an id."""
    grouped = by_topic(batches)
    # The header has tagged fields, with which the body begins; then no transactional id.
    before = NO_TAGS + NO_TAGS + _ACKS_AND_TIMEOUT.pack(-1, timeout_ms) + encode_varint(len(grouped) + 1)
    parts: list[Buffer] = []
    for topic, wanted in grouped.items():
        before += topic_ids[topic] + encode_varint(len(wanted) + 1)
        for _, partition, payload in wanted:
            parts += (before + _INT32.pack(partition) + encode_varint(len(payload) + 1), payload)
            before = NO_TAGS
        before += NO_TAGS
    parts.append(before + NO_TAGS)
    return parts


#: Special timestamps: the end, and the first offset on the leader's own disks (Java `LATEST_TIMESTAMP`,
#: `EARLIEST_LOCAL_TIMESTAMP`).
_LATEST, _EARLIEST, _EARLIEST_LOCAL = -1, -2, -4
#: A consumer's end is the high watermark, a debugging replica's the log end (Java `ListOffsetsRequest`).
_CONSUMER, _DEBUGGING = -1, -2
#: An array of one element in the compact encoding.
_ONE = encode_varint(2)
_LISTED_OFFSET = struct.Struct(">ihqq")


def encode_list_end(topic: str, partition: int, *, replicated: bool, committed: bool = False) -> list[Buffer]:
    """A ListOffsets request for the end of a partition: of replicated records, or of the addressed broker's log.

    Args:
        committed: of replicated records, the end for readers of committed records (last stable offset).
    """
    return encode_list_ends([TopicPartition(topic, partition)], replicated=replicated, committed=committed)


def encode_list_ends(
    partitions: Iterable[TopicPartition], *, replicated: bool = True, committed: bool = False
) -> list[Buffer]:
    """As `encode_list_end`, for partitions with a common leader; `parse_list_ends` parses the response."""
    topics = by_topic(list(partitions))
    body = [struct.pack(">ibi", _CONSUMER if replicated else _DEBUGGING, int(committed), len(topics))]
    for topic, wanted in topics.items():
        body += [encode_string(topic), _INT32.pack(len(wanted))]
        body += [struct.pack(">iiq", number, -1, _LATEST) for _topic, number in wanted]
    return [b"".join(body)]


def encode_list_start(topic: str, partition: int) -> list[Buffer]:
    """A ListOffsets request for the first offset of a partition; `parse_list_end` parses the response."""
    wanted = struct.pack(">iiiq", 1, partition, -1, _EARLIEST)
    return [struct.pack(">ibi", _CONSUMER, 0, 1) + encode_string(topic) + wanted]


class ListedEnd(NamedTuple):
    """An end of a partition according to one broker."""

    error_code: int
    offset: int
    #: The newest leader epoch in the broker's log; a leader begins a new one when it is elected.
    leader_epoch: int


@response_of("ListOffsets")
def parse_list_end(view: memoryview) -> ListedEnd:
    """Parse the response to `encode_list_end`."""
    (listed,) = parse_list_ends(view).values()
    return listed


@response_of("ListOffsets")
def parse_list_ends(view: memoryview) -> dict[TopicPartition, ListedEnd]:
    """Parse the response to `encode_list_ends`."""
    reader = FieldReader(view, flexible=False)
    _throttle, found = reader.int32(), {}
    for _ in range(reader.count()):
        topic = reader.string()
        for _ in range(reader.count()):
            number, error_code, _timestamp, offset = reader.numbers(_LISTED_OFFSET)
            found[TopicPartition(topic, number)] = ListedEnd(error_code, offset, reader.int32())
    return found


def encode_local_log_start(topic: str, partition: int) -> list[Buffer]:
    """A ListOffsets request for the first local offset; its header has tagged fields, with which the body begins."""
    wanted = struct.pack(">iiq", partition, -1, _EARLIEST_LOCAL)
    head = NO_TAGS + struct.pack(">ib", -1, 0)
    return [head + _ONE + encode_compact(topic) + _ONE + wanted + 3 * NO_TAGS]


@response_of("ListOffsets")
def parse_local_log_start(view: memoryview) -> tuple[int, int]:
    """Parse the response to `encode_local_log_start`: error code and offset."""
    response = FieldReader(view, flexible=True)
    response.skip_tags()
    _throttle, _topics, _topic, _partitions = response.int32(), response.count(), response.string(), response.count()
    _partition, error_code, _timestamp, offset = response.numbers(_LISTED_OFFSET)
    return error_code, offset


def encode_log_dirs() -> list[Buffer]:
    """A DescribeLogDirs request for all topics: naming them would need their partitions first."""
    return [_INT32.pack(-1)]


_EPOCH_END = struct.Struct(">hiiq")


class EpochEnd(NamedTuple):
    """The end of a leader epoch in a leader's log: the start of the next one, or the log's end.

    `end` is -1 if the leader does not know the epoch (Java `OffsetsForLeaderEpochResponse.UNDEFINED_EPOCH_OFFSET`).
    """

    topic: str
    partition: int
    error_code: int
    end: int


def encode_epoch_ends(epochs: Sequence[tuple[str, int, int]]) -> list[Buffer]:
    """An OffsetForLeaderEpoch request of a consumer (KIP-320) for (topic, partition, leader epoch)."""
    grouped = by_topic(epochs)
    # -1: the client is not a replica, and does not send its known leader epoch.
    parts: list[Buffer] = [struct.pack(">ii", -1, len(grouped))]
    for topic, wanted in grouped.items():
        parts += (encode_string(topic), _INT32.pack(len(wanted)))
        parts += (struct.pack(">iii", partition, -1, epoch) for _, partition, epoch in wanted)
    return parts


@response_of("OffsetForLeaderEpoch")
def parse_epoch_ends(view: memoryview) -> list[EpochEnd]:
    """Parse the response to `encode_epoch_ends`."""
    _throttle, topics = struct.unpack_from(">ii", view, 0)
    position = 8
    result = []
    for _ in range(topics):
        topic, position = read_string(view, position)
        (count,) = _INT32.unpack_from(view, position)
        position += 4
        for _ in range(count):
            error_code, partition, _epoch, end = _EPOCH_END.unpack_from(view, position)
            position += _EPOCH_END.size
            result.append(EpochEnd(topic, partition, error_code, end))
    return result
