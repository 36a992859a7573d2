"""Metadata, encoded and decoded here: the current topic ids according to one broker, which no client library returns.

Version 10 (Kafka 2.8, KIP-516) is the first with topic ids.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from mirror_lib.cluster.protocol.fields import (
    NO_TAGS,
    TOPIC_ID_BYTES,
    FieldReader,
    decode_topic_id,
    encode_compact,
    encode_varint,
    left_of,
)
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.outside_limits import METADATA_ELEMENTS, METADATA_OBJECTS

METADATA, METADATA_VERSION = 3, 10

_NO_ID = bytes(TOPIC_ID_BYTES)
#: Do not create topics, and do not return allowed operations.
_OPTIONS = struct.pack(">bbb", 0, 0, 0)
#: Error code, index, leader and leader epoch of a partition.
_PARTITION = struct.Struct(">hiii")


class NamedTopic(NamedTuple):
    """A broker's information about a topic's name."""

    error_code: int
    #: As Java's `Uuid` writes it; None if the topic has none, or does not exist.
    topic_id: str | None


def encode_topic_ids(topics: Iterable[str]) -> list[Buffer]:
    """A Metadata request for some topics; its header has tagged fields, with which the body begins."""
    wanted = [_NO_ID + encode_compact(topic) + NO_TAGS for topic in topics]
    return [NO_TAGS + encode_varint(len(wanted) + 1) + b"".join(wanted) + _OPTIONS + NO_TAGS]


@response_of("Metadata")
def parse_topic_ids(view: memoryview) -> dict[str, NamedTopic]:
    """Parse the response to `encode_topic_ids`, by name."""
    response = FieldReader(view, flexible=True, elements=METADATA_ELEMENTS)
    response.skip_tags()
    response.int32()
    for _ in range(response.count()):
        _node, _host, _port, _rack = response.int32(), response.string(), response.int32(), response.string()
        response.skip_tags()
    _cluster, _controller = response.string(), response.int32()
    found = {}
    topics = response.count()
    left_of(METADATA_OBJECTS, topics)
    for _ in range(topics):
        error_code, name, raw = response.int16(), response.string(), response.topic_id()
        found[name] = NamedTopic(error_code, None if error_code or raw == _NO_ID else decode_topic_id(raw))
        response.int8()
        for _ in range(response.count()):
            response.numbers(_PARTITION)
            for _replicas in range(3):
                response.skip(4 * response.count())
            response.skip_tags()
        response.int32()
        response.skip_tags()
    return found
