"""Requests about consumer groups, encoded and decoded here: many groups in one request if Kafka supports it.

librdkafka's admin client requests one group at a time, which costs two requests for each of thousands of groups. Kafka
3.0 and newer find the coordinators of many groups (KIP-699) and return the committed offsets of many groups (KIP-709)
in one request each; older brokers get one request per group over the same connection.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mirror_lib.cluster.protocol.fields import (
    EMPTY_ARRAY,
    NO_TAGS,
    NULL_ARRAY,
    FieldReader,
    encode_compact,
    encode_string,
    encode_varint,
)
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.outside_limits import LIST_ELEMENTS
from mirror_lib.topology.names import TopicPartition

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, LIST_GROUPS = 8, 9, 10, 16
#: Without tagged fields (KIP-482); Kafka 2.4 supports all of these.
OFFSET_COMMIT_VERSION, SINGLE_OFFSET_FETCH, SINGLE_FIND_COORDINATOR, PLAIN_LIST_GROUPS = 7, 5, 2, 2
#: For many groups at once, since Kafka 3.0.
BATCH_OFFSET_FETCH, BATCH_FIND_COORDINATOR = 8, 4
#: Since Kafka 2.6 with the groups' states (KIP-518), since 3.8 with their kinds (KIP-848).
LIST_GROUPS_WITH_STATES, LIST_GROUPS_WITH_KINDS = 4, 5

_INT8, _INT16, _INT32 = struct.Struct(">b"), struct.Struct(">h"), struct.Struct(">i")
_COMMITTED = struct.Struct(">iqi")
_TO_COMMIT = struct.Struct(">iqi")
_GROUP_KEY = 0
#: A commit without a member: the broker accepts it only for groups without members: `Admin.alterConsumerGroupOffsets`.
_NO_GENERATION, _NO_LEADER_EPOCH = -1, -1


class ListedGroupFields(NamedTuple):
    """A group in a ListGroups response; fields that the version lacks are empty."""

    group: str
    protocol_type: str
    state: str
    kind: str


class CoordinatorFields(NamedTuple):
    """The coordinator of a group, or an error."""

    group: str
    error_code: int
    node: int


class CommittedOffset(NamedTuple):
    """A group's committed offset, with its metadata."""

    offset: int
    metadata: str = ""


class GroupOffsets(NamedTuple):
    """All committed offsets of a group; errors are codes of the protocol."""

    group: str
    error_code: int
    offsets: dict[TopicPartition, CommittedOffset]
    partition_errors: dict[TopicPartition, int]


def encode_list_groups(version: int) -> list[Buffer]:
    """A ListGroups request for all groups of a broker."""
    if version < LIST_GROUPS_WITH_STATES:
        return []
    filters = EMPTY_ARRAY if version < LIST_GROUPS_WITH_KINDS else EMPTY_ARRAY + EMPTY_ARRAY
    return [NO_TAGS + filters + NO_TAGS]


@response_of("ListGroups")
def parse_list_groups(view: memoryview, version: int) -> tuple[int, list[ListedGroupFields]]:
    """Parse a ListGroups response: its error code and the groups."""
    flexible = version >= LIST_GROUPS_WITH_STATES
    reader = FieldReader(view, flexible=flexible, elements=LIST_ELEMENTS)
    reader.skip_tags()
    reader.skip(4)
    error_code = reader.int16()
    groups = []
    for _ in range(reader.count()):
        name, protocol_type = reader.string(), reader.string()
        state = reader.string() if version >= LIST_GROUPS_WITH_STATES else ""
        kind = reader.string() if version >= LIST_GROUPS_WITH_KINDS else ""
        reader.skip_tags()
        groups.append(ListedGroupFields(name, protocol_type, state, kind))
    return error_code, groups


def encode_find_coordinators(groups: Sequence[str]) -> list[Buffer]:
    """A FindCoordinator request for many groups."""
    names = b"".join(encode_compact(group) for group in groups)
    return [NO_TAGS + _INT8.pack(_GROUP_KEY) + encode_varint(len(groups) + 1) + names + NO_TAGS]


@response_of("FindCoordinator")
def parse_find_coordinators(view: memoryview) -> list[CoordinatorFields]:
    """Parse the response to `encode_find_coordinators`."""
    reader = FieldReader(view, flexible=True)
    reader.skip_tags()
    reader.skip(4)
    found = []
    for _ in range(reader.count()):
        group, node = reader.string(), reader.int32()
        _host, _port = reader.string(), reader.int32()
        error_code, _message = reader.int16(), reader.string()
        reader.skip_tags()
        found.append(CoordinatorFields(group, error_code, node))
    return found


def encode_find_coordinator(group: str) -> list[Buffer]:
    """A FindCoordinator request for one group, for brokers before Kafka 3.0."""
    return [encode_string(group) + _INT8.pack(_GROUP_KEY)]


@response_of("FindCoordinator")
def parse_find_coordinator(view: memoryview, group: str) -> CoordinatorFields:
    """Parse the response to `encode_find_coordinator`."""
    reader = FieldReader(view, flexible=False)
    reader.skip(4)
    error_code, _message, node = reader.int16(), reader.string(), reader.int32()
    return CoordinatorFields(group, error_code, node)


def encode_fetch_offsets(groups: Sequence[str], *, stable: bool = False) -> list[Buffer]:
    """An OffsetFetch request for all committed offsets of many groups.

    Args:
        stable: with an error for partitions whose offset an open transaction will replace (KIP-447). MM2 does not ask.
    """
    body = b"".join(encode_compact(group) + NULL_ARRAY + NO_TAGS for group in groups)
    return [NO_TAGS + encode_varint(len(groups) + 1) + body + _INT8.pack(stable) + NO_TAGS]


@response_of("OffsetFetch")
def parse_fetch_offsets(view: memoryview) -> list[GroupOffsets]:
    """Parse the response to `encode_fetch_offsets`."""
    reader = FieldReader(view, flexible=True)
    reader.skip_tags()
    reader.skip(4)
    found = []
    for _ in range(reader.count()):
        group = reader.string()
        offsets, errors = _parse_committed(reader)
        error_code = reader.int16()
        reader.skip_tags()
        found.append(GroupOffsets(group, error_code, offsets, errors))
    return found


def encode_fetch_group_offsets(group: str) -> list[Buffer]:
    """An OffsetFetch request for all committed offsets of one group, for brokers before Kafka 3.0."""
    return [encode_string(group) + _INT32.pack(-1)]


@response_of("OffsetFetch")
def parse_fetch_group_offsets(view: memoryview, group: str) -> GroupOffsets:
    """Parse the response to `encode_fetch_group_offsets`."""
    reader = FieldReader(view, flexible=False)
    reader.skip(4)
    offsets, errors = _parse_committed(reader)
    return GroupOffsets(group, reader.int16(), offsets, errors)


def encode_commit(group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> list[Buffer]:
    """An OffsetCommit request for a group without members, without leader epochs."""
    by_topic: dict[str, list[tuple[int, CommittedOffset]]] = {}
    for partition, committed in offsets.items():
        by_topic.setdefault(partition.topic, []).append((partition.partition, committed))
    parts = [
        encode_string(group),
        _INT32.pack(_NO_GENERATION),
        encode_string(""),
        _INT16.pack(-1),
        _INT32.pack(len(by_topic)),
    ]
    for topic, wanted in by_topic.items():
        parts += (encode_string(topic), _INT32.pack(len(wanted)))
        for number, committed in wanted:
            parts += (_TO_COMMIT.pack(number, committed.offset, _NO_LEADER_EPOCH), encode_string(committed.metadata))
    return [b"".join(parts)]


@response_of("OffsetCommit")
def parse_commit(view: memoryview) -> dict[TopicPartition, int]:
    """Parse the response to `encode_commit`: an error code, possibly 0, for every partition."""
    reader = FieldReader(view, flexible=False)
    reader.skip(4)
    codes = {}
    for _ in range(reader.count()):
        topic = reader.string()
        for _ in range(reader.count()):
            partition = reader.int32()
            codes[TopicPartition(topic, partition)] = reader.int16()
    return codes


def _parse_committed(reader: FieldReader) -> tuple[dict[TopicPartition, CommittedOffset], dict[TopicPartition, int]]:
    """The topics of an OffsetFetch response, without missing offsets (-1)."""
    offsets: dict[TopicPartition, CommittedOffset] = {}
    errors: dict[TopicPartition, int] = {}
    for _ in range(reader.count()):
        topic = reader.string()
        for _ in range(reader.count()):
            number, offset, _leader_epoch = reader.numbers(_COMMITTED)
            metadata, error_code = reader.string(), reader.int16()
            reader.skip_tags()
            partition = TopicPartition(topic, number)
            if error_code:
                errors[partition] = error_code
            elif offset >= 0:
                offsets[partition] = CommittedOffset(offset, metadata)
        reader.skip_tags()
    return offsets, errors
