"""Reads and changes topics, partitions, configs, offsets and ACLs of a cluster (confluent-kafka's AdminClient).

Errors of one topic or partition are returned next to the results. If the cluster does not respond, or rejects the
client, the method raises within the admin's timeout.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Self, TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as NativePartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from confluent_kafka.admin import OffsetSpec as NativeOffsetSpec  # type: ignore[attr-defined]

from mirror_lib.cluster.admin import acls as admin_acls
from mirror_lib.cluster.admin import configs as admin_configs
from mirror_lib.cluster.admin.configs import ConfigChange, ConfigOperation
from mirror_lib.cluster.admin.model import (
    BrokerDescription,
    ConfigEntry,
    ConfigOrigin,
    OffsetFact,
    OffsetSpec,
    PartitionDescription,
    PerTopic,
    TopicConfigs,
    TopicDescription,
    TopicSpec,
)
from mirror_lib.cluster.admin.requests import AdminCalls, Question, raise_if_unreachable
from mirror_lib.cluster.admin.results import assignment, batches, configs, description, offset_fact, per_topic
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode, LocalCode
from mirror_lib.cluster.protocol.kafka_errors import OperationTooLargeError, error_for_code, is_retriable
from mirror_lib.errors import MirrorError, Where
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.acls import AclBinding, AclResource
from mirror_lib.topology.names import TopicPartition

__all__ = [
    "BrokerDescription",
    "ClusterAdmin",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigOrigin",
    "OffsetFact",
    "OffsetSpec",
    "PartitionDescription",
    "PerTopic",
    "TopicConfigs",
    "TopicDescription",
    "TopicSpec",
]

DEFAULT_TIMEOUT_SECONDS = 30.0
#: Maximum number of items in one request, so that a request to a large cluster stays within what brokers handle.
_TOPICS_AT_ONCE, _PARTITIONS_AT_ONCE = 500, 2_000
#: Maximum number of metadata records that one request to create topics or partitions needs. A KRaft controller rejects
#: more than 10,000 (Java `QuorumController.MAX_RECORDS_PER_USER_OP`); smaller requests leave it time for others.
_NEW_RECORDS_AT_ONCE = 2_000
#: Pause between requests to leaders that are announced but do not lead yet.
_SETTLING_PAUSE = 0.5
#: Error codes of brokers that do not know yet that they lead a partition.
_SETTLING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
_Item = TypeVar("_Item")
#: librdkafka sends a request for each of them.
_GROUPS_AT_ONCE = 100

#: librdkafka's error codes if it knows no leader of a partition, or of any requested one.
_STALE = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, LocalCode.UNKNOWN_PARTITION, LocalCode.UNKNOWN_TOPIC, LocalCode.NO_ENTRY}
)


class ClusterAdmin:
    """Administration of one cluster. Use as a context manager; thread-safe.

    Every method raises `BrokerUnreachableError` if the cluster does not respond in time, and `AuthenticationError` as
    soon as it rejects the credentials or the TLS handshake fails.
    """

    def __init__(self, connection: Connection, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """Does not connect before the context is entered.

        Args:
            timeout_seconds: maximum wait for a method's result; for the very first response, at most ten seconds.
        """
        self._connection = connection
        self._calls = AdminCalls(connection, timeout_seconds)

    @property
    def cluster(self) -> str:
        """The alias of the cluster, for messages."""
        return self._connection.cluster

    def __enter__(self) -> Self:
        # Connects in the background while the caller continues.
        _ = self._calls.client
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.close()

    def cluster_id(self) -> str | None:
        """The cluster id; None before Kafka 0.10.1. Requested once."""
        return self._calls.cluster_id()

    def brokers(self) -> tuple[BrokerDescription, ...]:
        """The brokers that are up, by id."""
        nodes = self._calls.describe_cluster().nodes
        return tuple(
            sorted((BrokerDescription(n.id, n.host, n.port, n.rack) for n in nodes), key=lambda broker: broker.id)
        )

    def list_topics(self) -> list[str]:
        """All topics that the user may describe, including internal ones, in order."""
        deadline = self._calls.begin()
        failure: MirrorError | None = None
        for seconds in self._calls.attempts(deadline):
            try:
                return sorted(self._calls.client.list_topics(timeout=seconds).topics)
            except KafkaException as error:
                failure = self._calls.failure(error, "list topics")
            if not failure.retriable:
                break
        assert failure is not None
        raise failure

    def describe_topics(self, names: Iterable[str]) -> PerTopic[TopicDescription]:
        """The partitions of topics; missing topics are in the result's `errors`."""
        return self._describe(names, self._calls.begin())

    def topic_configs(self, names: Iterable[str]) -> PerTopic[TopicConfigs]:
        """Every config of topics with its origin."""

        def ask(topics: Sequence[str], seconds: float) -> dict[str, Future[Any]]:
            resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
            responses = self._calls.client.describe_configs(resources, request_timeout=seconds)
            return {resource.name: future for resource, future in responses.items()}

        deadline = self._calls.begin()
        needs = partial(Grant.on_topic, Operation.DESCRIBE_CONFIGS)
        question = Question("read the configs of a topic", _TOPICS_AT_ONCE, ask, self._topic, needs, read=configs)
        return per_topic(self._calls.responses(question, sorted(set(names)), deadline))

    def broker_configs(self) -> Mapping[str, str | None]:
        """The configs of one broker; the other brokers are assumed to have the same.

        Raises:
            AuthorizationError: the user may not read them.
            MirrorError: the cluster did not respond in time, or rejected the request.
        """
        broker = self.brokers()[0]

        def ask(ids: Sequence[str], seconds: float) -> dict[str, Future[Any]]:
            resources = [ConfigResource(ConfigResource.Type.BROKER, each) for each in ids]
            responses = self._calls.client.describe_configs(resources, request_timeout=seconds)
            return {resource.name: future for resource, future in responses.items()}

        needs = partial(_on_cluster, Operation.DESCRIBE_CONFIGS)
        question = Question("read the configs of a broker", 1, ask, self._broker, needs, read=configs)
        response = self._calls.responses(question, [str(broker.id)], self._calls.begin())[str(broker.id)]
        if isinstance(response, MirrorError):
            raise response
        return {name: entry.value for name, entry in response.entries.items()}

    def list_offsets(self, partitions: Iterable[TopicPartition], which: OffsetSpec) -> dict[TopicPartition, OffsetFact]:
        """An offset of each requested partition; each fact has an offset or an error."""
        native: Any = NativeOffsetSpec
        spec = native.earliest() if which is OffsetSpec.EARLIEST else native.latest()
        specs = dict.fromkeys(partitions, spec)
        return self._list_offsets(specs, f"find the {which.value} offset", committed=which is OffsetSpec.LAST_STABLE)

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetFact]:
        """The first record of each partition at or after a time in epoch milliseconds.

        Each fact has an offset or an error; the offset is -1 if all records are older.
        """
        native: Any = NativeOffsetSpec
        specs = {partition: native.for_timestamp(milliseconds) for partition, milliseconds in times.items()}
        return self._list_offsets(specs, "find the offset of a timestamp", committed=False)

    def _list_offsets(
        self, specs: Mapping[TopicPartition, Any], doing: str, *, committed: bool
    ) -> dict[TopicPartition, OffsetFact]:
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

        def ask(wanted: Sequence[TopicPartition], seconds: float) -> dict[TopicPartition, Future[Any]]:
            responses = self._calls.client.list_offsets(
                {NativePartition(*partition): specs[partition] for partition in wanted},
                isolation_level=isolation,
                request_timeout=seconds,
            )
            return {TopicPartition(key.topic, key.partition): future for key, future in responses.items()}

        question = Question(
            doing,
            _PARTITIONS_AT_ONCE,
            ask,
            self._partition,
            lambda each: _describe_grant(each.topic),
            read=lambda _, native: offset_fact(native),
        )
        responses = self._ask_leaders(question, sorted(specs))
        return {
            partition: offset_fact(response) if isinstance(response, MirrorError) else response
            for partition, response in responses.items()
        }

    def create_topics(
        self, specs: Sequence[TopicSpec], *, validate_only: bool = False
    ) -> dict[str, MirrorError | None]:
        """Create topics; return the result of each by name, None for success. Brokers may show them a little later.

        Args:
            validate_only: the cluster checks everything, including policies, and creates nothing.
        """

        def create(part: Sequence[TopicSpec], seconds: float) -> dict[str, Future[Any]]:
            return self._calls.client.create_topics(
                [NewTopic(s.name, s.partitions, s.replication_factor, config=dict(s.configs)) for s in part],
                validate_only=validate_only,
                operation_timeout=seconds,
                request_timeout=seconds,
            )

        parts = batches(specs, _NEW_RECORDS_AT_ONCE, weight=_metadata_records)
        return self._in_parts(parts, create, "create a topic", Operation.CREATE)

    def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, MirrorError | None]:
        """Increase topics to these numbers of partitions; return the result of each by name, None for success.

        Brokers may show the new partitions a little later.
        """

        def grow(part: Sequence[tuple[str, int]], seconds: float) -> dict[str, Future[Any]]:
            return self._calls.client.create_partitions(
                [NewPartitions(topic, count) for topic, count in part],
                validate_only=validate_only,
                operation_timeout=seconds,
                request_timeout=seconds,
            )

        parts = batches(sorted(counts.items()), _NEW_RECORDS_AT_ONCE, weight=lambda item: item[1])
        return self._in_parts(parts, grow, "add partitions to a topic", Operation.ALTER)

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> dict[str, MirrorError | None]:
        """Set and delete configs of topics; return the result of each topic by name, None for success.

        The changes of a topic are atomic.

        Args:
            validate_only: the cluster checks everything, including policies, and changes nothing.
        """
        return admin_configs.alter_topic_configs(self._calls, self.cluster, changes, validate_only=validate_only)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, MirrorError | None]:
        """Delete the records of partitions before an offset each (KIP-107); None for success."""
        if not before:
            return {}
        seconds = _seconds_left(self._calls.begin())
        wanted = [NativePartition(*place, offset) for place, offset in before.items()]
        futures = self._calls.client.delete_records(wanted, request_timeout=seconds, operation_timeout=seconds)
        found: dict[TopicPartition, MirrorError | None] = {}
        for each, future in futures.items():
            place = TopicPartition(each.topic, each.partition)
            needs = Grant.on_topic(Operation.DELETE, place.topic)
            done = self._calls.wait(future, seconds, "delete records", self._partition(place), needs)
            found[place] = done if isinstance(done, MirrorError) else None
        return found

    def acls(self, resources: Iterable[AclResource]) -> frozenset[AclBinding]:
        """Every ACL on resources of these types, with any pattern.

        Raises:
            SecurityDisabledError: the cluster has no authorizer.
            AuthorizationError: listing ACLs needs DESCRIBE on the cluster.
        """
        return admin_acls.list_acls(self._connection, resources)

    def create_acls(self, acls: Iterable[AclBinding]) -> dict[AclBinding, MirrorError | None]:
        """Create ACLs; return the result of each, None for success. An existing ACL is a success, too.

        Raises:
            SecurityDisabledError: the cluster has no authorizer.
        """
        return admin_acls.create_acls(self._calls, self.cluster, acls)

    def delete_acls(self, acls: Iterable[AclBinding]) -> dict[AclBinding, MirrorError | None]:
        """Delete exactly these ACLs; return the result of each, None for success. A missing ACL is a success, too.

        Raises:
            SecurityDisabledError: the cluster has no authorizer.
        """
        return admin_acls.delete_acls(self._calls, self.cluster, acls)

    def group_assignments(self, groups: Iterable[str]) -> dict[str, frozenset[TopicPartition] | MirrorError]:
        """The current assignment of the members of consumer groups, or an error."""

        def ask(names: Sequence[str], seconds: float) -> Mapping[str, Future[Any]]:
            futures: Mapping[str, Future[Any]] = self._calls.client.describe_consumer_groups(
                list(names), request_timeout=seconds
            )
            return futures

        question = Question(
            "read the assignments of the members of a group",
            _GROUPS_AT_ONCE,
            ask,
            lambda _: Where(cluster=self.cluster),
            partial(Grant.on_group, Operation.DESCRIBE),
            read=lambda _, native: assignment(native),
        )
        return self._calls.responses(question, sorted(set(groups)), self._calls.begin())

    def _describe(self, names: Iterable[str], deadline: float) -> PerTopic[TopicDescription]:
        def ask(topics: Sequence[str], seconds: float) -> dict[str, Future[Any]]:
            return self._calls.client.describe_topics(TopicCollection(list(topics)), request_timeout=seconds)

        question = Question(
            "describe a topic",
            _TOPICS_AT_ONCE,
            ask,
            self._topic,
            _describe_grant,
            read=lambda _, native: description(native),
        )
        return per_topic(self._calls.responses(question, sorted(set(names)), deadline))

    def _ask_leaders(
        self, question: Question[TopicPartition], wanted: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Any]:
        """A result or an error for every partition, from its current leader.

        librdkafka sends to the leaders in its cache: it does not know newer topics and partitions, nor leaders that
            have
        moved. Describing a topic refreshes its cache.
        """
        deadline = self._calls.begin()
        found: dict[TopicPartition, Any] = {}
        again = self._ask_again(question, wanted, self._calls.attempts(deadline), deadline, found)
        # With thousands of new partitions, brokers announce leaders before these learn of it.
        while again and time.monotonic() < deadline:
            time.sleep(_SETTLING_PAUSE)
            still = self._ask_again(question, again, (_seconds_left(deadline),), deadline, found)
            if len(still) < len(again):
                deadline = self._calls.begin()
            again = still
        raise_if_unreachable(found.values())
        return found

    def _ask_again(
        self,
        question: Question[TopicPartition],
        wanted: Sequence[TopicPartition],
        attempts: Iterable[float],
        deadline: float,
        found: dict[TopicPartition, Any],
    ) -> Sequence[TopicPartition]:
        """Add results of leaders to `found`; return the partitions whose announced leader does not lead them yet."""
        again = wanted
        settling: list[TopicPartition] = []
        for seconds in attempts:
            more, codes = self._calls.ask_once(question, again, seconds)
            found |= more
            doubtful = [partition for partition, code in codes.items() if code in _STALE or is_retriable(code)]
            problems = self._leaderless(doubtful, question, deadline) if doubtful else {}
            found |= problems
            again = [partition for partition in doubtful if partition not in problems or problems[partition].retriable]
            settling = [each for each in again if each not in problems and codes[each] in _SETTLING]
            if not again:
                break
        return settling

    def _leaderless(
        self, partitions: Sequence[TopicPartition], question: Question[TopicPartition], deadline: float
    ) -> dict[TopicPartition, MirrorError]:
        """The partitions that do not exist, may not be described or have no leader, each with its error."""
        topics = self._describe({partition.topic for partition in partitions}, deadline)
        problems: dict[TopicPartition, MirrorError] = {}
        for partition in partitions:
            topic, where = topics.get(partition.topic), self._partition(partition)
            if topic is None:
                # There may have been no time left to request it.
                if (error := topics.errors.get(partition.topic)) is not None:
                    problems[partition] = type(error)(error.what, where=where, action=error.action)
            elif partition.partition >= len(topic.partitions):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                problems[partition] = error_for_code(code, where=where, doing=question.doing)
            elif topic.partitions[partition.partition].leader is None:
                code = ErrorCode.LEADER_NOT_AVAILABLE
                problems[partition] = error_for_code(code, where=where, doing=question.doing)
        return problems

    def _in_parts(
        self,
        parts: Iterable[Sequence[_Item]],
        ask: Callable[[Sequence[_Item], float], dict[str, Future[Any]]],
        doing: str,
        operation: Operation,
    ) -> dict[str, MirrorError | None]:
        """Change topics in parts; a part that is too large for the controller is halved."""
        deadline = self._calls.begin()
        outcome: dict[str, MirrorError | None] = {}
        left = deque(parts)
        while left:
            part, seconds = left.popleft(), _seconds_left(deadline)
            changed = self._wait_for_changes(ask(part, seconds), seconds, doing, operation)
            if len(part) > 1 and any(isinstance(error, OperationTooLargeError) for error in changed.values()):
                middle = len(part) // 2
                left.extendleft((part[middle:], part[:middle]))
            else:
                outcome |= changed
        return outcome

    def _wait_for_changes(
        self, futures: Mapping[str, Future[Any]], seconds: float, doing: str, operation: Operation
    ) -> dict[str, MirrorError | None]:
        outcome = {
            topic: self._calls.wait(future, seconds, doing, self._topic(topic), Grant.on_topic(operation, topic))
            for topic, future in futures.items()
        }
        raise_if_unreachable(outcome.values())
        return outcome

    def _broker(self, _id: str) -> Where:
        return Where(cluster=self.cluster)

    def _topic(self, topic: str) -> Where:
        return Where(cluster=self.cluster, topic=topic)

    def _partition(self, partition: TopicPartition) -> Where:
        return Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)


def _on_cluster(operation: Operation, _broker: str) -> Grant:
    return Grant.on_cluster(operation)


def _describe_grant(topic: str) -> Grant:
    return Grant.on_topic(Operation.DESCRIBE, topic)


def _metadata_records(spec: TopicSpec) -> int:
    """Number of records that a KRaft controller writes to create a topic (`ReplicationControlManager.createTopic`)."""
    return 1 + max(spec.partitions, 1) + len(spec.configs)


def _seconds_left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.1)
