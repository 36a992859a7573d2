"""Responses with millions of elements: refused before they take memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Callable

import pytest
from aiokafka.protocol.types import Array, Int8, Int32, Schema

from mirror_lib.cluster.protocol.acls import parse_describe_acls
from mirror_lib.cluster.protocol.fetch import PLAIN_VERSION, parse_fetch
from mirror_lib.cluster.protocol.fields import encode_varint
from mirror_lib.cluster.protocol.groups import parse_fetch_offsets, parse_list_groups
from mirror_lib.cluster.protocol.malformed import GarbledAnswerError
from mirror_lib.cluster.protocol.topic_ids import parse_topic_ids
from mirror_lib.cluster.protocol.transactions import parse_list_transactions
from mirror_lib.cluster.raw import handshake
from mirror_lib.outside_limits import LIST_ELEMENTS, METADATA_ELEMENTS, METADATA_OBJECTS, RESPONSE_ELEMENTS

_MEBIBYTE = 1 << 20
_MORE, _MORE_LISTED = RESPONSE_ELEMENTS + 1, LIST_ELEMENTS + 1


def _count(number: int) -> bytes:
    return encode_varint(number + 1)


def _groups(number: int) -> bytes:
    return b"\0" + bytes(6) + _count(number) + b"\3ab\3cd\3ef\3gh\0" * number + b"\0"


def _offsets(partitions: int) -> bytes:
    topic = b"\2t" + _count(partitions) + bytes(partitions * 20)
    return b"\0" + bytes(4) + _count(1) + b"\2g" + _count(1) + topic


def _nested_offsets(topics: int) -> bytes:
    return b"\0" + bytes(4) + _count(1) + b"\2g" + _count(topics) + b"\2t\1\0" * topics


def _plain_fetch(aborted: int) -> bytes:
    head = bytes(10) + struct.pack(">ih1si", 1, 1, b"t", 1)
    return head + bytes(4 + 2 + 3 * 8) + struct.pack(">i", aborted) + bytes(aborted * 16) + bytes(8)


def _topics(replicas: int) -> bytes:
    """A topic whose partition has replicas without an end."""
    topic = bytes(2) + b"\2t" + bytes(16) + bytes(1) + _count(1) + bytes(14) + _count(replicas)
    return b"\0" + bytes(4) + b"\1\1" + bytes(4) + _count(1) + topic


#: Without partitions.
_TOPIC = bytes(2) + b"\2t" + bytes(16) + b"\0\1" + bytes(5)
_TOO_MANY: dict[str, tuple[Callable[[memoryview], object], Callable[[], bytes]]] = {
    "groups": (lambda view: parse_list_groups(view, 5), lambda: _groups(_MORE_LISTED)),
    "a count alone": (lambda view: parse_list_groups(view, 5), lambda: b"\0" + bytes(6) + _count(2**31 - 2)),
    "offsets": (parse_fetch_offsets, lambda: _offsets(_MORE)),
    "topics of offsets": (parse_fetch_offsets, lambda: _nested_offsets(_MORE // 2)),
    "transactions": (
        parse_list_transactions,
        lambda: b"\0" + bytes(6) + _count(_MORE_LISTED) + b"\2t" * _MORE_LISTED,
    ),
    "ACLs": (
        parse_describe_acls,
        lambda: bytes(8) + struct.pack(">i", _MORE_LISTED) + (b"\1\0\1t\3" + bytes(4)) * _MORE_LISTED,
    ),
    "aborted transactions": (lambda view: parse_fetch(view, PLAIN_VERSION), lambda: _plain_fetch(_MORE)),
    "partitions": (parse_topic_ids, lambda: _topics(METADATA_ELEMENTS)),
    "topics": (
        parse_topic_ids,
        lambda: b"\0" + bytes(4) + b"\1\1" + bytes(4) + _count(METADATA_OBJECTS) + _TOPIC * METADATA_OBJECTS,
    ),
}


@pytest.mark.parametrize("kind", _TOO_MANY)
def test_a_response_with_too_many_elements_is_refused_and_takes_little_memory(kind: str) -> None:
    read, make = _TOO_MANY[kind]
    sent = memoryview(make())
    tracemalloc.start()
    try:
        with pytest.raises(GarbledAnswerError, match="more elements than are allowed"):
            read(sent)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 150 * _MEBIBYTE


def test_as_many_groups_as_are_allowed_are_read() -> None:
    assert len(parse_list_groups(memoryview(_groups(LIST_ELEMENTS - 1)), 5)[1]) == LIST_ELEMENTS - 1


def test_arrays_of_aiokafkas_responses_are_counted_together() -> None:
    kind = Array(Schema(("a", Int8), ("b", Array(Int32))))
    sent = struct.pack(">i", 3) + (b"\1" + struct.pack(">ii", 1, 7)) * 3
    handshake._ELEMENTS.left = 10
    assert kind.decode(io.BytesIO(sent)) == [(1, [7])] * 3

    handshake._ELEMENTS.left = 9
    with pytest.raises(ValueError, match="more elements than are allowed"):
        kind.decode(io.BytesIO(sent))
    handshake._ELEMENTS.left, handshake._ELEMENTS.objects = METADATA_ELEMENTS, METADATA_OBJECTS
    for length in (2**31 - 1, METADATA_OBJECTS + 1):
        with pytest.raises(ValueError, match="more elements than are allowed"):
            kind.decode(io.BytesIO(struct.pack(">i", length)))
