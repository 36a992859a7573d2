"""Consumer groups as a cluster tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mirror_lib.cluster.group_protocol import CommittedOffset, ListedGroupFields
from mirror_lib.errors import ClusterError, MirrorError
from mirror_lib.topology.names import TopicPartition


class GroupActiveError(ClusterError):
    """The group has members on this cluster: nobody else may commit for it."""

    reason = "group-active"


class GroupState(StrEnum):
    """What a group is doing (Java `org.apache.kafka.common.GroupState`), as far as it matters here."""

    #: It has no members: others may commit for it. So has a group whose offsets are committed without membership.
    EMPTY = "empty"
    #: It is about to be forgotten, or does not exist.
    DEAD = "dead"
    #: It has members, or is about to have some.
    ACTIVE = "active"
    #: The broker does not tell (before Kafka 2.6).
    UNKNOWN = "unknown"


class GroupKind(StrEnum):
    """The protocol that a group speaks (Java `GroupType`)."""

    CLASSIC = "classic"
    #: KIP-848.
    CONSUMER = "consumer"
    #: KIP-932.
    SHARE = "share"
    #: KIP-1071.
    STREAMS = "streams"
    #: Those that keep no offsets, such as the groups of Connect's workers.
    OTHER = "other"

    @property
    def of_consumers(self) -> bool:
        """Whether its members are consumers, which commit offsets."""
        return self in (GroupKind.CLASSIC, GroupKind.CONSUMER)


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as a broker lists it."""

    group: str
    state: GroupState
    kind: GroupKind


@dataclass(frozen=True, slots=True)
class Committed:
    """What groups have committed. A group is in `offsets` or in `errors`; one that does not exist has no offsets."""

    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    errors: Mapping[str, MirrorError] = field(default_factory=dict)
    #: Single partitions that could not be told.
    partition_errors: Mapping[tuple[str, TopicPartition], MirrorError] = field(default_factory=dict)


def listed_group(fields: ListedGroupFields) -> ListedGroup:
    """A group as ListGroups tells it."""
    return ListedGroup(fields.group, _state(fields.state), _kind(fields))


def _state(text: str) -> GroupState:
    match text.lower():
        case "":
            return GroupState.UNKNOWN
        case "empty":
            return GroupState.EMPTY
        case "dead":
            return GroupState.DEAD
        case _:
            return GroupState.ACTIVE


def _kind(fields: ListedGroupFields) -> GroupKind:
    """As Java's `Admin.listConsumerGroups`, by which MM2 looks: Connect's groups are classic, but no consumers."""
    kind = fields.kind.lower() or GroupKind.CLASSIC.value
    if kind == GroupKind.CLASSIC:
        # A group of which only offsets are known has no protocol type.
        return GroupKind.CLASSIC if fields.protocol_type in ("", "consumer") else GroupKind.OTHER
    return GroupKind(kind) if kind in tuple(GroupKind) else GroupKind.OTHER
