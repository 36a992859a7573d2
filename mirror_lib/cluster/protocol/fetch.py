"""Fetch, encoded and decoded here: record batches stay memoryviews of the response's frame.

Version 12 (Kafka 2.7, KIP-595) contains the leader epoch of the record before the requested one. A leader whose log
differs there, because it was truncated and has grown again, reports that instead of returning its records. The field
was designed for followers, but leaders check it for every reader (Java `Partition.readRecords`).

Version 13 (Kafka 3.1, KIP-516) identifies topics by their ids: a topic that was deleted and recreated under the same
name has another id, and brokers reject the request.

A leader that knows the reader's rack may name another replica instead of sending records (KIP-392).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from mirror_lib.cluster.protocol.fields import (
    EMPTY_ARRAY,
    NO_TAGS,
    TOPIC_ID_BYTES,
    encode_compact,
    encode_string,
    encode_topic_id,
    encode_varint,
    left_of,
    read_varint,
    skip_tags,
)
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.cluster.protocol.produce import by_topic, read_string
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.errors import Where
from mirror_lib.outside_limits import RESPONSE_ELEMENTS

#: Without tagged fields; Kafka 2.4 is the first to support it, and every supported broker is newer.
FETCH, PLAIN_VERSION = 1, 11
#: With the last fetched epoch, and in the compact encoding of KIP-482.
EPOCH_CHECKING_VERSION = 12
#: With the ids of topics in place of their names.
TOPIC_ID_VERSION = 13
#: Nothing to check.
UNKNOWN_EPOCH = -1

_REQUEST_HEAD = struct.Struct(">iiiibii")
_PLAIN_REQUEST = struct.Struct(">iiqqi")
#: With its empty tagged fields.
_CHECKING_REQUEST = struct.Struct(">iiqiqib")
_HEAD = struct.Struct(">ihi")
#: Number, error code, high watermark, last stable offset, log start offset: fields of `FetchedPartition` in order.
_PARTITION = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_INT32 = struct.Struct(">i")
_EPOCH_END = struct.Struct(">iq")
#: The preferred replica and the size of the records.
_REPLICA_AND_SIZE = struct.Struct(">ii")
_CONSUMER, _NO_SESSION, _NO_SESSION_EPOCH, _UNKNOWN = -1, 0, -1, -1
_DIVERGING_EPOCH_TAG = 0


class FetchRequestPartition(NamedTuple):
    """One partition to read: from `offset`, at most about `max_bytes` (the broker always returns one whole batch)."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    #: The leader epoch of the record before `offset`, if the leader must check that it still has that history.
    last_epoch: int = UNKNOWN_EPOCH
    #: As Java's `Uuid` writes it, if a recreated topic with the same name must not be read.
    topic_id: str | None = None


class FetchedPartition(NamedTuple):
    """A broker's result for one partition. `records` is a view of the network frame: use it, then release it."""

    topic: str
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start: int
    #: (producer id, first offset) of aborted transactions; only with read committed.
    aborted: tuple[tuple[int, int], ...]
    records: memoryview
    #: Set if the leader's log is not the one that was read before: the two may be equal up to here.
    diverging_end: int | None = None
    #: The broker to read from instead; there are no records then. Only for readers with a rack.
    preferred_replica: int | None = None


def encode_fetch(
    partitions: Sequence[FetchRequestPartition],
    *,
    max_bytes: int,
    max_wait_ms: int,
    min_bytes: int,
    read_committed: bool,
    version: int = PLAIN_VERSION,
    rack: str = "",
) -> list[Buffer]:
    """A Fetch request of a consumer, without a fetch session.

    Args:
        rack: of the reader, so that a leader may name another replica; "" reads from the addressed broker.
    """
    head = _REQUEST_HEAD.pack(
        _CONSUMER, max_wait_ms, min_bytes, max_bytes, int(read_committed), _NO_SESSION, _NO_SESSION_EPOCH
    )
    grouped = by_topic(partitions)
    if version < EPOCH_CHECKING_VERSION:
        parts: list[Buffer] = [head, _INT32.pack(len(grouped))]
        for topic, wanted in grouped.items():
            parts += (encode_string(topic), _INT32.pack(len(wanted)))
            parts += (
                _PLAIN_REQUEST.pack(each.partition, _UNKNOWN, each.offset, _UNKNOWN, each.max_bytes) for each in wanted
            )
        return [*parts, _INT32.pack(0) + encode_string(rack)]
    parts = [NO_TAGS + head, encode_varint(len(grouped) + 1)]
    for topic, wanted in grouped.items():
        by_id = version >= TOPIC_ID_VERSION
        parts += (_id_of(wanted[0]) if by_id else encode_compact(topic), encode_varint(len(wanted) + 1))
        parts += (
            _CHECKING_REQUEST.pack(each.partition, _UNKNOWN, each.offset, each.last_epoch, _UNKNOWN, each.max_bytes, 0)
            for each in wanted
        )
        parts.append(NO_TAGS)
    # No partitions to forget.
    return [*parts, EMPTY_ARRAY + encode_compact(rack) + NO_TAGS]


def _id_of(wanted: FetchRequestPartition) -> bytes:
    assert wanted.topic_id is not None
    return encode_topic_id(wanted.topic_id)


def names_by_id(partitions: Sequence[FetchRequestPartition]) -> dict[bytes, str]:
    """The topic names of a request by id, for its response; empty if a topic has no id."""
    if not all(each.topic_id for each in partitions):
        return {}
    return {_id_of(wanted[0]): topic for topic, wanted in by_topic(partitions).items()}


@response_of("Fetch")
def parse_fetch(
    view: memoryview, version: int = PLAIN_VERSION, names: Mapping[bytes, str] = MappingProxyType({})
) -> list[FetchedPartition]:
    """Parse a Fetch response.

    Args:
        names: of topics by id, for versions that contain only ids.

    Raises:
        GarbledAnswerError: it is malformed.
        MirrorError: an error of the request as a whole.
    """
    checking = version >= EPOCH_CHECKING_VERSION
    # The header of the newer responses has tagged fields too.
    position = skip_tags(view, 0) if checking else 0
    _throttle, error_code, _session = _HEAD.unpack_from(view, position)
    if error_code:
        raise error_for_code(error_code, where=Where(), doing="fetch")
    position += _HEAD.size
    if not checking:
        return list(_plain(view, position))
    return list(_parse_partitions(view, position, names if version >= TOPIC_ID_VERSION else None))


@response_of("Fetch")
def fetch_throttle_ms(view: memoryview, version: int = PLAIN_VERSION) -> int:
    """Milliseconds during which the broker reads nothing from the connection because of a quota; 0: not throttled."""
    position = skip_tags(view, 0) if version >= EPOCH_CHECKING_VERSION else 0
    (milliseconds,) = _INT32.unpack_from(view, position)
    return int(milliseconds)


def _plain(view: memoryview, position: int) -> Iterator[FetchedPartition]:
    (topics,) = _INT32.unpack_from(view, position)
    position += 4
    left = RESPONSE_ELEMENTS
    for _ in range(topics):
        topic, position = read_string(view, position)
        (count,) = _INT32.unpack_from(view, position)
        position += 4
        for _ in range(count):
            numbers: tuple[int, int, int, int, int] = _PARTITION.unpack_from(view, position)
            (aborted_count,) = _INT32.unpack_from(view, position + _PARTITION.size)
            position += _PARTITION.size + 4
            left = left_of(left, max(aborted_count, 0))
            aborted = []
            for _ in range(max(aborted_count, 0)):
                aborted.append(_ABORTED.unpack_from(view, position))
                position += _ABORTED.size
            preferred, size = _REPLICA_AND_SIZE.unpack_from(view, position)
            records, position = _records(view, position + _REPLICA_AND_SIZE.size, size)
            yield FetchedPartition(topic, *numbers, tuple(aborted), records, preferred_replica=_replica(preferred))


def _parse_partitions(view: memoryview, position: int, names: Mapping[bytes, str] | None) -> Iterator[FetchedPartition]:
    topics, position = read_varint(view, position)
    left = RESPONSE_ELEMENTS
    for _ in range(topics - 1):
        topic, position = _name(view, position) if names is None else _name_by_id(view, position, names)
        count, position = read_varint(view, position)
        for _ in range(count - 1):
            numbers: tuple[int, int, int, int, int] = _PARTITION.unpack_from(view, position)
            aborted_count, position = read_varint(view, position + _PARTITION.size)
            left = left_of(left, max(aborted_count - 1, 0))
            aborted = []
            for _ in range(aborted_count - 1):
                aborted.append(_ABORTED.unpack_from(view, position))
                position = skip_tags(view, position + _ABORTED.size)
            (preferred,) = _INT32.unpack_from(view, position)
            size, position = read_varint(view, position + _INT32.size)
            records, position = _records(view, position, size - 1)
            diverging_end, position = _diverging_end(view, position)
            yield FetchedPartition(topic, *numbers, tuple(aborted), records, diverging_end, _replica(preferred))
        position = skip_tags(view, position)


def _name(view: memoryview, position: int) -> tuple[str, int]:
    length, position = read_varint(view, position)
    if length < 1:
        raise ValueError("a topic has no name")
    end = position + length - 1
    return str(view[position:end], "utf-8"), end


def _name_by_id(view: memoryview, position: int, names: Mapping[bytes, str]) -> tuple[str, int]:
    end = position + TOPIC_ID_BYTES
    topic = names.get(bytes(view[position:end]))
    if topic is None:
        raise ValueError("a topic was not asked for")
    return topic, end


def _replica(node: int) -> int | None:
    return node if node >= 0 else None


def _records(view: memoryview, position: int, size: int) -> tuple[memoryview, int]:
    """The batches of a partition, empty if null; and the position after them."""
    end = position + max(size, 0)
    if end > len(view):
        raise ValueError(f"records of {size} bytes do not fit it")
    return view[position:end], end


def _diverging_end(view: memoryview, position: int) -> tuple[int | None, int]:
    """The end of the requested epoch in the leader's log, if it differs; and the position after it."""
    found = None
    count, position = read_varint(view, position)
    for _ in range(count):
        tag, position = read_varint(view, position)
        size, position = read_varint(view, position)
        if tag == _DIVERGING_EPOCH_TAG:
            _epoch, found = _EPOCH_END.unpack_from(view, position)
        position += size
    return found, position
