"""Requests about consumer groups, encoded and decoded by hand: many groups in one request where Kafka allows it.

librdkafka's admin client asks for one group at a time, which costs two requests for each of thousands of groups. Kafka
3.0 and newer find the coordinators of many groups (KIP-699) and tell the committed offsets of many groups (KIP-709) in
one request each; older brokers are asked for one group after the other over the same connection.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mirror_lib.cluster.data_connection import Buffer
from mirror_lib.cluster.garbled import answer_of, read_varint
from mirror_lib.topology.names import TopicPartition

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, LIST_GROUPS = 8, 9, 10, 16
#: Without tagged fields (KIP-482); Kafka 2.4 speaks all of these.
OFFSET_COMMIT_VERSION, SINGLE_OFFSET_FETCH, SINGLE_FIND_COORDINATOR, PLAIN_LIST_GROUPS = 7, 5, 2, 2
#: For many groups at once, since Kafka 3.0.
BATCH_OFFSET_FETCH, BATCH_FIND_COORDINATOR = 8, 4
#: Since Kafka 2.6 with the groups' states (KIP-518), since 3.8 with their kinds (KIP-848).
LIST_GROUPS_WITH_STATES, LIST_GROUPS_WITH_KINDS = 4, 5

_INT8, _INT16, _INT32 = struct.Struct(">b"), struct.Struct(">h"), struct.Struct(">i")
_COMMITTED = struct.Struct(">iqi")
_TO_COMMIT = struct.Struct(">iqi")
_GROUP_KEY = 0
#: A commit by nobody: the broker takes it only for groups without members (Java `Admin.alterConsumerGroupOffsets`).
_NO_GENERATION, _NO_LEADER_EPOCH = -1, -1
#: In the compact encoding: no tagged fields, an empty array, no array at all.
_NO_TAGS, _EMPTY, _NULL = b"\0", b"\1", b"\0"


class ListedGroupFields(NamedTuple):
    """A group as ListGroups tells it; what the version does not tell is empty."""

    group: str
    protocol_type: str
    state: str
    kind: str


class CoordinatorFields(NamedTuple):
    """The broker that answers for a group, or why none does."""

    group: str
    error_code: int
    node: int


class CommittedOffset(NamedTuple):
    """The offset to go on from, as a group committed it, and the text that it committed along with it."""

    offset: int
    metadata: str = ""


class GroupOffsets(NamedTuple):
    """All that a group has committed; errors are codes of the protocol."""

    group: str
    error_code: int
    offsets: dict[TopicPartition, CommittedOffset]
    partition_errors: dict[TopicPartition, int]


def encode_list_groups(version: int) -> list[Buffer]:
    """A ListGroups request for all groups of the broker that is asked."""
    if version < LIST_GROUPS_WITH_STATES:
        return []
    filters = _EMPTY if version < LIST_GROUPS_WITH_KINDS else _EMPTY + _EMPTY
    return [_NO_TAGS + filters + _NO_TAGS]


@answer_of("ListGroups")
def parse_list_groups(view: memoryview, version: int) -> tuple[int, list[ListedGroupFields]]:
    """Read a ListGroups answer: its error code and the groups."""
    flexible = version >= LIST_GROUPS_WITH_STATES
    reader = _Reader(view, flexible=flexible)
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
    names = b"".join(_compact(group) for group in groups)
    return [_NO_TAGS + _INT8.pack(_GROUP_KEY) + _varint(len(groups) + 1) + names + _NO_TAGS]


@answer_of("FindCoordinator")
def parse_find_coordinators(view: memoryview) -> list[CoordinatorFields]:
    """Read the answer to `encode_find_coordinators`."""
    reader = _Reader(view, flexible=True)
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
    return [_plain(group) + _INT8.pack(_GROUP_KEY)]


@answer_of("FindCoordinator")
def parse_find_coordinator(view: memoryview, group: str) -> CoordinatorFields:
    """Read the answer to `encode_find_coordinator`."""
    reader = _Reader(view, flexible=False)
    reader.skip(4)
    error_code, _message, node = reader.int16(), reader.string(), reader.int32()
    return CoordinatorFields(group, error_code, node)


def encode_fetch_offsets(groups: Sequence[str]) -> list[Buffer]:
    """An OffsetFetch request for everything that many groups have committed.

    Commits of open transactions are not waited for (`requireStable` is false), as in MM2.
    """
    body = b"".join(_compact(group) + _NULL + _NO_TAGS for group in groups)
    return [_NO_TAGS + _varint(len(groups) + 1) + body + _INT8.pack(0) + _NO_TAGS]


@answer_of("OffsetFetch")
def parse_fetch_offsets(view: memoryview) -> list[GroupOffsets]:
    """Read the answer to `encode_fetch_offsets`."""
    reader = _Reader(view, flexible=True)
    reader.skip_tags()
    reader.skip(4)
    found = []
    for _ in range(reader.count()):
        group = reader.string()
        offsets, errors = reader.committed()
        error_code = reader.int16()
        reader.skip_tags()
        found.append(GroupOffsets(group, error_code, offsets, errors))
    return found


def encode_fetch_group_offsets(group: str) -> list[Buffer]:
    """An OffsetFetch request for everything that one group has committed, for brokers before Kafka 3.0."""
    return [_plain(group) + _INT32.pack(-1)]


@answer_of("OffsetFetch")
def parse_fetch_group_offsets(view: memoryview, group: str) -> GroupOffsets:
    """Read the answer to `encode_fetch_group_offsets`."""
    reader = _Reader(view, flexible=False)
    reader.skip(4)
    offsets, errors = reader.committed()
    return GroupOffsets(group, reader.int16(), offsets, errors)


def encode_commit(group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> list[Buffer]:
    """An OffsetCommit request on behalf of a group without members, without leader epochs."""
    by_topic: dict[str, list[tuple[int, CommittedOffset]]] = {}
    for partition, committed in offsets.items():
        by_topic.setdefault(partition.topic, []).append((partition.partition, committed))
    parts = [_plain(group), _INT32.pack(_NO_GENERATION), _plain(""), _INT16.pack(-1), _INT32.pack(len(by_topic))]
    for topic, wanted in by_topic.items():
        parts += (_plain(topic), _INT32.pack(len(wanted)))
        for number, committed in wanted:
            parts += (_TO_COMMIT.pack(number, committed.offset, _NO_LEADER_EPOCH), _plain(committed.metadata))
    return [b"".join(parts)]


@answer_of("OffsetCommit")
def parse_commit(view: memoryview) -> dict[TopicPartition, int]:
    """Read the answer to `encode_commit`: an error code, possibly 0, for every partition."""
    reader = _Reader(view, flexible=False)
    reader.skip(4)
    codes = {}
    for _ in range(reader.count()):
        topic = reader.string()
        for _ in range(reader.count()):
            partition = reader.int32()
            codes[TopicPartition(topic, partition)] = reader.int16()
    return codes


class _Reader:
    """Takes one field after the other from an answer, in the plain or the compact encoding."""

    __slots__ = ("_at", "_flexible", "_view")

    def __init__(self, view: memoryview, *, flexible: bool) -> None:
        self._view = view
        self._at = 0
        self._flexible = flexible

    def skip(self, size: int) -> None:
        self._at += size

    def int16(self) -> int:
        (number,) = _INT16.unpack_from(self._view, self._at)
        self._at += 2
        return int(number)

    def int32(self) -> int:
        (number,) = _INT32.unpack_from(self._view, self._at)
        self._at += 4
        return int(number)

    def count(self) -> int:
        """The length of an array; a null array has none."""
        return max(self._varint() - 1 if self._flexible else self.int32(), 0)

    def string(self) -> str:
        """A string; a null one reads as empty."""
        length = self._varint() - 1 if self._flexible else self.int16()
        if length <= 0:
            return ""
        end = self._at + length
        if end > len(self._view):
            raise ValueError(f"a text of {length} bytes does not fit it")
        text = str(self._view[self._at : end], "utf-8", "replace")
        self._at = end
        return text

    def skip_tags(self) -> None:
        """Pass over tagged fields, of which we know none."""
        if not self._flexible:
            return
        for _ in range(self._varint()):
            self._varint()
            size = self._varint()
            self._at += size

    def committed(self) -> tuple[dict[TopicPartition, CommittedOffset], dict[TopicPartition, int]]:
        """The topics of an OffsetFetch answer; offsets that are not there (-1) are left out."""
        offsets: dict[TopicPartition, CommittedOffset] = {}
        errors: dict[TopicPartition, int] = {}
        for _ in range(self.count()):
            topic = self.string()
            for _ in range(self.count()):
                number, offset, _leader_epoch = _COMMITTED.unpack_from(self._view, self._at)
                self._at += _COMMITTED.size
                metadata, error_code = self.string(), self.int16()
                self.skip_tags()
                partition = TopicPartition(topic, number)
                if error_code:
                    errors[partition] = error_code
                elif offset >= 0:
                    offsets[partition] = CommittedOffset(offset, metadata)
            self.skip_tags()
        return offsets, errors

    def _varint(self) -> int:
        value, self._at = read_varint(self._view, self._at)
        return value


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _compact(text: str) -> bytes:
    raw = text.encode()
    return _varint(len(raw) + 1) + raw


def _plain(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw
