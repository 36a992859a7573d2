"""Consumer groups of a cluster: list them, read their committed offsets, and commit for them.

Thousands of groups need few requests: one per broker lists them with their states, then one per `_GROUPS_AT_ONCE`
groups finds their coordinators, and one reads their offsets. Only a commit is always for one group: Kafka has no
request for several. Errors of one group are returned; if the cluster does not respond, the method raises.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self, TypeVar

from mirror_lib.cluster.admin.results import batches
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.leader_wait import LeaderWait
from mirror_lib.cluster.protocol import groups as protocol
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.groups import CommittedOffset, GroupOffsets, ListedGroupFields
from mirror_lib.cluster.protocol.kafka_errors import error_for_code, is_retriable
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.errors import BrokerUnreachableError, ClusterError, MirrorError, RetriesExhaustedError, Where
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition


class GroupActiveError(ClusterError):
    """The group has members on this cluster: only they may commit."""

    reason = "group-active"


class GroupState(StrEnum):
    """State of a group (Java `org.apache.kafka.common.GroupState`), reduced to what matters here."""

    #: No members: other clients may commit. Also a group whose offsets are committed without membership.
    EMPTY = "empty"
    #: It is about to be deleted, or does not exist.
    DEAD = "dead"
    #: It has members, or is about to have some.
    ACTIVE = "active"
    #: The broker does not report it (before Kafka 2.6).
    UNKNOWN = "unknown"


class GroupKind(StrEnum):
    """The protocol of a group (Java `GroupType`)."""

    CLASSIC = "classic"
    #: KIP-848.
    CONSUMER = "consumer"
    #: KIP-932.
    SHARE = "share"
    #: KIP-1071.
    STREAMS = "streams"
    #: Groups without offsets, such as those of Connect's workers.
    OTHER = "other"

    @property
    def of_consumers(self) -> bool:
        """True if its members are consumers, which commit offsets."""
        return self in (GroupKind.CLASSIC, GroupKind.CONSUMER)


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as a broker lists it."""

    group: str
    state: GroupState
    kind: GroupKind


@dataclass(frozen=True, slots=True)
class Committed:
    """Committed offsets of groups. A group is in `offsets` or in `errors`; a missing group has no offsets."""

    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    errors: Mapping[str, MirrorError] = field(default_factory=dict)
    #: Partitions whose offset was not returned.
    partition_errors: Mapping[tuple[str, TopicPartition], MirrorError] = field(default_factory=dict)


def listed_group(fields: ListedGroupFields) -> ListedGroup:
    """A group from a ListGroups response."""
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
    """As Java's `Admin.listConsumerGroups`, which MM2 uses: Connect's groups are classic, but not consumer groups."""
    kind = fields.kind.lower() or GroupKind.CLASSIC.value
    if kind == GroupKind.CLASSIC:
        # A group with offsets only has no protocol type.
        return GroupKind.CLASSIC if fields.protocol_type in ("", "consumer") else GroupKind.OTHER
    return GroupKind(kind) if kind in tuple(GroupKind) else GroupKind.OTHER


__all__ = ["Committed", "CommittedOffset", "GroupActiveError", "GroupAdmin", "GroupKind", "GroupState", "ListedGroup"]

_Response = TypeVar("_Response")

DEFAULT_TIMEOUT_SECONDS = 30.0
#: A response for this number of groups with 50 partitions each has about a megabyte.
_GROUPS_AT_ONCE = 100
#: A broker reads the requests of one connection one after the other; more in flight would only wait there.
_REQUESTS_UNDER_WAY = 16
_PAUSE_SECONDS = 0.1

#: The group has members: only they may commit (Java `ClassicGroup`, `ConsumerGroup`: `validateOffsetCommit`).
_ACTIVE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})
#: The group has another coordinator now, or its coordinator is not ready.
_COORDINATION = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


class GroupAdmin:
    """The groups of one cluster. Use as a context manager, outside of any running event loop.

    Every method raises `BrokerUnreachableError` if no broker responds in time.
    """

    def __init__(
        self,
        connection: Connection,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        leader_wait: LeaderWait | None = None,
    ) -> None:
        """Does not connect before the context is entered.

        Args:
            timeout_seconds: how long a method retries after errors that usually pass.
            leader_wait: limits how long groups wait for their coordinators if other groups' coordinators respond.
        """
        self.leader_wait = leader_wait or LeaderWait()
        self._client = RawClient(connection)
        self._timeout = timeout_seconds
        #: Some coordinator has responded.
        self._has_coordinator = False
        self._runner: asyncio.Runner | None = None
        self._coordinators: dict[str, int] = {}
        #: Requests sent so far.
        self.requests = 0

    @property
    def cluster(self) -> str:
        """The alias of the cluster, for messages."""
        return self._client.cluster

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._client.__aenter__())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._runner is not None
        try:
            self._runner.run(self._client.__aexit__(None, None, None))
        finally:
            self._runner.close()

    def list_groups(self) -> dict[str, ListedGroup]:
        """All groups that the user may describe, with or without members, by name."""
        return self._run(self._list_groups())

    def fetch_committed(self, groups: Iterable[str]) -> Committed:
        """All committed offsets of groups."""
        return self._run(self._fetch_committed(sorted(set(groups))))

    def pending_offsets(self, groups: Iterable[str]) -> list[tuple[str, TopicPartition]]:
        """Groups and partitions whose offset an open transaction will replace (KIP-447); none before Kafka 3.0.

        Raises:
            MirrorError: a group cannot be read.
        """
        found: dict[str, GroupOffsets] = {}
        errors = self._run(
            self._by_coordinator(
                sorted(groups), lambda node, part: self._fetch(node, part, found, stable=True), Operation.DESCRIBE
            )
        )
        for error in errors.values():
            raise error
        return sorted(
            (group, partition)
            for group, response in found.items()
            for partition, code in response.partition_errors.items()
            if code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        )

    def commit(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> dict[str, dict[TopicPartition, MirrorError | None]]:
        """Commit for groups without members; return the result of each partition, None for success.

        A group that does not exist is created.
        """
        return self._run(self._commit_all(offsets))

    def _run(self, work: Coroutine[Any, Any, _Response]) -> _Response:
        if self._runner is None:
            work.close()
            raise RuntimeError("GroupAdmin is a context manager")
        return self._runner.run(work)

    # Listing

    async def _list_groups(self) -> dict[str, ListedGroup]:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                responses = await asyncio.gather(*(self._list_of(node, deadline) for node in self._client.brokers()))
                return {fields.group: listed_group(fields) for response in responses for fields in response}
            except BrokerUnreachableError:
                if time.monotonic() > deadline:
                    raise
                # Other brokers coordinate the groups of a broker that is gone.
                await self._pause()

    async def _list_of(self, node: int, deadline: float) -> list[ListedGroupFields]:
        version = protocol.PLAIN_LIST_GROUPS
        for newer in (protocol.LIST_GROUPS_WITH_KINDS, protocol.LIST_GROUPS_WITH_STATES):
            if await self._client.speaks(node, protocol.LIST_GROUPS, newer):
                version = newer
                break
        while True:
            response = await self._ask(node, protocol.LIST_GROUPS, version, protocol.encode_list_groups(version))
            code, groups = protocol.parse_list_groups(response, version)
            if code == ErrorCode.NONE:
                return groups
            if not is_retriable(code) or time.monotonic() > deadline:
                raise error_for_code(code, where=self._where, doing="list the groups")
            await asyncio.sleep(_PAUSE_SECONDS)

    # Reading

    async def _fetch_committed(self, groups: Sequence[str]) -> Committed:
        found: dict[str, GroupOffsets] = {}
        errors = await self._by_coordinator(
            groups, lambda node, part: self._fetch(node, part, found), Operation.DESCRIBE
        )
        offsets = {group: response.offsets for group, response in found.items()}
        partition_errors = {
            (group, partition): self._error(
                code, f"read the offsets of group {group}", Operation.DESCRIBE, group, partition
            )
            for group, response in found.items()
            for partition, code in response.partition_errors.items()
        }
        return Committed(offsets, errors, partition_errors)

    async def _fetch(
        self, node: int, groups: Sequence[str], found: dict[str, GroupOffsets], *, stable: bool = False
    ) -> dict[str, int]:
        if await self._client.speaks(node, protocol.OFFSET_FETCH, protocol.BATCH_OFFSET_FETCH):
            body = protocol.encode_fetch_offsets(groups, stable=stable)
            response = await self._ask(node, protocol.OFFSET_FETCH, protocol.BATCH_OFFSET_FETCH, body)
            responses = protocol.parse_fetch_offsets(response)
        else:
            responses = await _gather_limited(groups, lambda group: self._fetch_one(node, group))
        codes = {}
        for each in responses:
            if each.error_code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                found[each.group] = each
            else:
                codes[each.group] = each.error_code
        return codes

    async def _fetch_one(self, node: int, group: str) -> GroupOffsets:
        body = protocol.encode_fetch_group_offsets(group)
        response = await self._ask(node, protocol.OFFSET_FETCH, protocol.SINGLE_OFFSET_FETCH, body)
        return protocol.parse_fetch_group_offsets(response, group)

    # Committing

    async def _commit_all(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> dict[str, dict[TopicPartition, MirrorError | None]]:
        done: dict[str, dict[TopicPartition, int]] = {}

        async def commit(node: int, groups: Sequence[str]) -> dict[str, int]:
            responses = await _gather_limited(groups, lambda group: self._commit(node, group, offsets[group]))
            again = {}
            for group, codes in zip(groups, responses, strict=True):
                moved = next((code for code in codes.values() if code in _COORDINATION), None)
                if moved is None:
                    done[group] = codes
                else:
                    again[group] = moved
            return again

        errors = await self._by_coordinator([group for group in offsets if offsets[group]], commit, Operation.READ)
        outcome: dict[str, dict[TopicPartition, MirrorError | None]] = {
            group: dict.fromkeys(offsets[group], error) for group, error in errors.items()
        }
        for group, codes in done.items():
            doing = f"commit offsets of group {group}"
            outcome[group] = {
                partition: self._error(code, doing, Operation.READ, group, partition) if code else None
                for partition, code in codes.items()
            }
        return outcome

    async def _commit(
        self, node: int, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, int]:
        body = protocol.encode_commit(group, offsets)
        return protocol.parse_commit(
            await self._ask(node, protocol.OFFSET_COMMIT, protocol.OFFSET_COMMIT_VERSION, body)
        )

    # Coordinators

    async def _by_coordinator(
        self,
        groups: Sequence[str],
        ask: Callable[[int, Sequence[str]], Awaitable[dict[str, int]]],
        operation: Operation,
    ) -> dict[str, MirrorError]:
        """Send to every group's coordinator, with retries; return the errors of groups without a result.

        Args:
            ask: sends a request for some groups to one broker, stores the results, and returns error codes of the other
                groups.
            operation: the operation on a group that the user needs permission for.
        """
        began = time.monotonic()
        deadline = began + self._timeout
        left = list(groups)
        failed: dict[str, MirrorError] = {}
        waits = False
        while left:
            codes, lost = await self._round(left, ask)
            self._has_coordinator = self._has_coordinator or len(codes) < len(left)
            left = []
            for group, code in codes.items():
                self._coordinators.pop(group, None)
                if code in _COORDINATION or is_retriable(code):
                    left.append(group)
                else:
                    failed[group] = self._error(code, f"use group {group}", operation, group)
            if not left:
                break
            others = len(left) < len(groups) or (lost is None and self._has_coordinator)
            if others and all(codes[each] == ErrorCode.COORDINATOR_NOT_AVAILABLE for each in left):
                waits = True
                deadline = min(deadline, began + self.leader_wait.seconds)
            if time.monotonic() > deadline:
                if lost is not None and len(left) == len(groups):
                    raise lost
                failed |= {group: lost or self._gave_up(group, codes[group]) for group in left}
                break
            await self._pause()
        if waits:
            self.leader_wait.note(began)
        return failed

    async def _round(
        self, groups: Sequence[str], ask: Callable[[int, Sequence[str]], Awaitable[dict[str, int]]]
    ) -> tuple[dict[str, int], BrokerUnreachableError | None]:
        """One attempt for every group: error codes of groups to retry or fail, and the last unreachable broker."""
        lost: BrokerUnreachableError | None = None
        try:
            codes = await self._find_coordinators([group for group in groups if group not in self._coordinators])
        except BrokerUnreachableError as error:
            return dict.fromkeys(groups, ErrorCode.COORDINATOR_NOT_AVAILABLE), error
        by_node: dict[int, list[str]] = {}
        for group in groups:
            if group not in codes:
                by_node.setdefault(self._coordinators[group], []).append(group)
        for node, members in by_node.items():
            for part in batches(members, _GROUPS_AT_ONCE):
                try:
                    codes |= await ask(node, part)
                except BrokerUnreachableError as error:
                    lost = error
                    codes |= dict.fromkeys(part, int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return codes, lost

    async def _find_coordinators(self, groups: Sequence[str]) -> dict[str, int]:
        """Find the groups' coordinators; return the error codes of groups without one."""
        if not groups:
            return {}
        # Another broker next time, in case this one is down.
        node = random.choice(self._client.brokers())
        if await self._client.speaks(node, protocol.FIND_COORDINATOR, protocol.BATCH_FIND_COORDINATOR):
            responses = []
            for part in batches(groups, _GROUPS_AT_ONCE):
                body = protocol.encode_find_coordinators(part)
                response = await self._ask(node, protocol.FIND_COORDINATOR, protocol.BATCH_FIND_COORDINATOR, body)
                responses += protocol.parse_find_coordinators(response)
        else:
            responses = await _gather_limited(groups, lambda group: self._find_coordinator(node, group))
        codes = {}
        for each in responses:
            if each.error_code == ErrorCode.NONE:
                self._coordinators[each.group] = each.node
            else:
                codes[each.group] = each.error_code
        return codes

    async def _find_coordinator(self, node: int, group: str) -> protocol.CoordinatorFields:
        body = protocol.encode_find_coordinator(group)
        response = await self._ask(node, protocol.FIND_COORDINATOR, protocol.SINGLE_FIND_COORDINATOR, body)
        return protocol.parse_find_coordinator(response, group)

    # In general

    async def _ask(self, node: int, api_key: int, version: int, body: Sequence[Any]) -> memoryview:
        self.requests += 1
        return await self._client.ask(node, api_key, version, body)

    async def _pause(self) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        # Without topics this refreshes only the list of brokers.
        await self._client.refresh_leaders([])

    def _error(
        self, code: int, doing: str, operation: Operation, group: str, partition: TopicPartition | None = None
    ) -> MirrorError:
        where, needs = self._where, Grant.on_group(operation, group)
        if partition is not None:
            where = Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)
            if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                needs = Grant.on_topic(operation, partition.topic)
        if code in _ACTIVE:
            return GroupActiveError(
                f"could not {doing}: it has members on this cluster.",
                where=where,
                action="Its members commit offsets themselves; stop them to let the flow synchronize its offsets.",
            )
        return error_for_code(code, where=where, doing=doing, needs=needs)

    def _gave_up(self, group: str, code: int) -> MirrorError:
        return RetriesExhaustedError(
            f"the coordinator of group {group} was not ready in time (error code {code}).",
            where=self._where,
            action="Check the brokers that hold __consumer_offsets; run again when they are healthy.",
        )

    @property
    def _where(self) -> Where:
        return Where(cluster=self.cluster)


async def _gather_limited(groups: Sequence[str], ask: Callable[[str], Awaitable[_Response]]) -> list[_Response]:
    """Send a request for each group with a few in flight; return the results in the groups' order."""
    slots = asyncio.Semaphore(_REQUESTS_UNDER_WAY)

    async def one(group: str) -> _Response:
        async with slots:
            return await ask(group)

    return list(await asyncio.gather(*(one(group) for group in groups)))
