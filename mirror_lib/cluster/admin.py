"""Asking and changing what a cluster is: topics, partitions, configs and offsets (confluent-kafka's AdminClient).

Whatever concerns one topic or partition fails alone: such errors are returned beside the answers. A cluster that does
not answer, or refuses us, is raised, and within the admin's timeout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as NativePartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from confluent_kafka.admin import OffsetSpec as NativeOffsetSpec  # type: ignore[attr-defined]

from mirror_lib.cluster.admin_answers import batches, configs, description, no_answer, offset_fact, per_topic
from mirror_lib.cluster.admin_model import (
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
from mirror_lib.cluster.client_errors import ClientErrors
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.error_codes import ErrorCode, LocalCode
from mirror_lib.cluster.kafka_errors import error_for, error_for_code, is_retriable
from mirror_lib.errors import BrokerUnreachableError, ConfigurationError, MirrorError, Where
from mirror_lib.topology.names import TopicPartition

__all__ = [
    "BrokerDescription",
    "ClusterAdmin",
    "ConfigEntry",
    "ConfigOrigin",
    "OffsetFact",
    "OffsetSpec",
    "PartitionDescription",
    "PerTopic",
    "TopicConfigs",
    "TopicDescription",
    "TopicSpec",
]

_Key = TypeVar("_Key")

DEFAULT_TIMEOUT_SECONDS = 30.0
#: A cluster that never answered is given up earlier than one that is only slow.
_FIRST_CONTACT_SECONDS = 10.0
#: How often a wait looks whether the cluster refused us in the meantime.
_LOOK_SECONDS = 0.1
#: Pauses before partitions without a leader and the like are asked for again.
_RETRY_PAUSES = (0.1, 0.3, 0.6)
#: Longest wait for one answer of a leader, before it is asked who leads now.
_ATTEMPT_SECONDS = 5.0
#: Items in one request, so that no request of a large cluster grows beyond what brokers answer at once. A KRaft
#: controller refuses requests that make more than 10,000 metadata records.
_TOPICS_AT_ONCE, _PARTITIONS_AT_ONCE, _NEW_PARTITIONS_AT_ONCE = 500, 2_000, 2_000

_NO_LEADER = ErrorCode.LEADER_NOT_AVAILABLE
#: How librdkafka says that it knows no leader of a partition, or of any that were asked for.
_STALE = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, LocalCode.UNKNOWN_PARTITION, LocalCode.UNKNOWN_TOPIC, LocalCode.NO_ENTRY}
)


class ClusterAdmin:
    """One cluster's administration. Use as a context manager; may be used by several threads.

    Every method raises `BrokerUnreachableError` when the cluster does not answer in time, and `AuthenticationError`
    as soon as it refuses our credentials or the TLS handshake fails.
    """

    def __init__(self, connection: Connection, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """Nothing is connected before the context is entered.

        Args:
            timeout_seconds: longest wait for one method's answer; the very first one is waited for at most ten
                seconds.
        """
        self._connection = connection
        self._timeout = timeout_seconds
        self._errors = ClientErrors(connection)
        self._native: AdminClient | None = None
        self._reached = False

    @property
    def cluster(self) -> str:
        """The alias of the cluster, for messages."""
        return self._connection.cluster

    def __enter__(self) -> Self:
        self._client()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._native, self._reached = None, False

    def cluster_id(self) -> str:
        """The id that the cluster gave itself."""
        return str(self._describe_cluster(self._timeout).cluster_id)

    def brokers(self) -> tuple[BrokerDescription, ...]:
        """The brokers that are up, by id."""
        nodes = self._describe_cluster(self._timeout).nodes
        return tuple(
            sorted((BrokerDescription(n.id, n.host, n.port, n.rack) for n in nodes), key=lambda broker: broker.id)
        )

    def list_topics(self) -> list[str]:
        """All topics that we may see, internal ones too, in order."""
        client, deadline = self._reach()
        try:
            metadata = client.list_topics(timeout=max(deadline - time.monotonic(), 0.1))
        except KafkaException as error:
            client.poll(0)
            raise self._failure(error, "list topics") from error
        return sorted(metadata.topics)

    def describe_topics(self, names: Iterable[str]) -> PerTopic[TopicDescription]:
        """The partitions of topics; those that do not exist are in the result's `errors`."""
        _, deadline = self._reach()
        return self._describe(names, deadline)

    def topic_configs(self, names: Iterable[str]) -> PerTopic[TopicConfigs]:
        """Every config of topics with its origin."""
        client, deadline = self._reach()

        def ask(topics: Sequence[str]) -> dict[str, Future[Any]]:
            resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
            answers = client.describe_configs(resources, request_timeout=_left(deadline))
            return {resource.name: future for resource, future in answers.items()}

        doing = "read the configs of a topic"
        answers = self._ask_all(sorted(set(names)), ask, _TOPICS_AT_ONCE, deadline, doing, _topic_where)
        return per_topic(answers, configs)

    def list_offsets(self, partitions: Iterable[TopicPartition], which: OffsetSpec) -> dict[TopicPartition, OffsetFact]:
        """An offset of every partition asked for; each fact has an offset or an error."""
        client, deadline = self._reach()
        native: Any = NativeOffsetSpec
        spec = native.earliest() if which is OffsetSpec.EARLIEST else native.latest()
        committed = which is OffsetSpec.LAST_STABLE
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        # librdkafka goes on to ask a leader that is gone until the time is up.
        attempt_seconds = min(_ATTEMPT_SECONDS, self._timeout / 3)

        def ask(wanted: Sequence[TopicPartition]) -> dict[TopicPartition, Future[Any]]:
            answers = client.list_offsets(
                {NativePartition(topic, partition): spec for topic, partition in wanted},
                isolation_level=isolation,
                request_timeout=min(attempt_seconds, _left(deadline)),
            )
            return {TopicPartition(key.topic, key.partition): future for key, future in answers.items()}

        wanted = sorted(set(partitions))
        answers = self._ask_leaders(wanted, ask, deadline, f"find the {which.value} offset")
        return {partition: offset_fact(answers[partition]) for partition in wanted}

    def create_topics(
        self, specs: Sequence[TopicSpec], *, validate_only: bool = False
    ) -> dict[str, MirrorError | None]:
        """Create topics; what became of each by name, None for success. Brokers may show them a little later.

        Args:
            validate_only: the cluster checks everything, policies too, and creates nothing.
        """
        client, deadline = self._reach()
        outcome: dict[str, MirrorError | None] = {}
        for part in batches(specs, _NEW_PARTITIONS_AT_ONCE, weight=lambda spec: max(spec.partitions, 1)):
            answers = client.create_topics(
                [NewTopic(s.name, s.partitions, s.replication_factor, config=dict(s.configs)) for s in part],
                validate_only=validate_only,
                operation_timeout=_left(deadline),
                request_timeout=_left(deadline),
            )
            outcome |= self._changed(answers, deadline, "create a topic")
        return outcome

    def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, MirrorError | None]:
        """Raise topics to these numbers of partitions; what became of each by name, None for success.

        Brokers may show the new partitions a little later.
        """
        client, deadline = self._reach()
        outcome: dict[str, MirrorError | None] = {}
        for part in batches(sorted(counts.items()), _NEW_PARTITIONS_AT_ONCE, weight=lambda item: item[1]):
            answers = client.create_partitions(
                [NewPartitions(topic, count) for topic, count in part],
                validate_only=validate_only,
                operation_timeout=_left(deadline),
                request_timeout=_left(deadline),
            )
            outcome |= self._changed(answers, deadline, "add partitions to a topic")
        return outcome

    def _client(self) -> AdminClient:
        if self._native is None:
            options = self._connection.librdkafka() | {"error_cb": self._errors.note}
            try:
                self._native = AdminClient(options)
            except KafkaException as error:
                raise ConfigurationError(
                    f"the client cannot be set up: {error.args[0].str()}.",
                    where=Where(cluster=self.cluster),
                    action="Check the ssl.* and sasl.* properties of the cluster.",
                ) from error
        return self._native

    def _reach(self) -> tuple[AdminClient, float]:
        """The client, sure to have been in touch with the cluster once, and the deadline of what follows."""
        client = self._client()
        if not self._reached:
            self._describe_cluster(min(self._timeout, _FIRST_CONTACT_SECONDS))
        return client, time.monotonic() + self._timeout

    def _describe_cluster(self, timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        future = self._client().describe_cluster(request_timeout=_left(deadline))
        answer = self._wait(future, deadline, "reach the cluster", Where(cluster=self.cluster))
        if isinstance(answer, MirrorError):
            raise answer
        self._reached = True
        return answer

    def _describe(self, names: Iterable[str], deadline: float) -> PerTopic[TopicDescription]:
        client = self._client()

        def ask(topics: Sequence[str]) -> dict[str, Future[Any]]:
            return client.describe_topics(TopicCollection(list(topics)), request_timeout=_left(deadline))

        answers = self._ask_all(sorted(set(names)), ask, _TOPICS_AT_ONCE, deadline, "describe a topic", _topic_where)
        return per_topic(answers, lambda _, native: description(native))

    def _ask_leaders(
        self,
        wanted: Sequence[TopicPartition],
        ask: Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, Future[Any]]],
        deadline: float,
        doing: str,
    ) -> dict[TopicPartition, Any]:
        """An answer or an error for every partition, from the leader that it has now.

        librdkafka asks the leaders it remembers: it knows nothing of topics and partitions that are new since, nor of
        leaders that moved. Describing a topic renews its memory.
        """
        if self._errors.lost_brokers(self._client()):
            self._describe({partition.topic for partition in wanted}, deadline)
        answers, codes = self._ask(wanted, ask, _PARTITIONS_AT_ONCE, deadline, doing, _partition_where)
        for pause in (0.0, *_RETRY_PAUSES):
            doubtful = [partition for partition, code in codes.items() if code in _STALE or is_retriable(code)]
            if not doubtful or time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
            problems = self._leaderless(doubtful, doing, deadline)
            again = [partition for partition in doubtful if partition not in problems]
            more, codes = self._ask(again, ask, _PARTITIONS_AT_ONCE, deadline, doing, _partition_where)
            answers |= problems | more
            codes |= dict.fromkeys((key for key, error in problems.items() if error.retriable), _NO_LEADER)
        _raise_if_unreachable(answers.values())
        return answers

    def _leaderless(
        self, partitions: Sequence[TopicPartition], doing: str, deadline: float
    ) -> dict[TopicPartition, MirrorError]:
        """Those of the partitions that do not exist, may not be seen or have no leader, each with its error."""
        topics = self._describe({partition.topic for partition in partitions}, deadline)
        problems: dict[TopicPartition, MirrorError] = {}
        for partition in partitions:
            where = _partition_where(self.cluster, partition)
            if (error := topics.errors.get(partition.topic)) is not None:
                problems[partition] = type(error)(error.what, where=where, action=error.action)
            elif partition.partition >= len(topics[partition.topic].partitions):
                problems[partition] = error_for_code(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, where=where, doing=doing)
            elif topics[partition.topic].partitions[partition.partition].leader is None:
                problems[partition] = error_for_code(_NO_LEADER, where=where, doing=doing)
        return problems

    def _ask_all(
        self,
        keys: Sequence[_Key],
        ask: Callable[[Sequence[_Key]], Mapping[_Key, Future[Any]]],
        at_once: int,
        deadline: float,
        doing: str,
        where: Callable[[str, _Key], Where],
    ) -> dict[_Key, Any]:
        """An answer or an error for every key; what Kafka calls retriable is asked for a few times."""
        answers, codes = self._ask(keys, ask, at_once, deadline, doing, where)
        for pause in _RETRY_PAUSES:
            again = [key for key, code in codes.items() if _passes(code)]
            if not again or time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
            more, codes = self._ask(again, ask, at_once, deadline, doing, where)
            answers |= more
        _raise_if_unreachable(answers.values())
        return answers

    def _ask(
        self,
        keys: Sequence[_Key],
        ask: Callable[[Sequence[_Key]], Mapping[_Key, Future[Any]]],
        at_once: int,
        deadline: float,
        doing: str,
        where: Callable[[str, _Key], Where],
    ) -> tuple[dict[_Key, Any], dict[_Key, int]]:
        """An answer or an error for every key, and the codes of the errors."""
        futures: dict[_Key, Future[Any]] = {}
        for part in batches(keys, at_once):
            futures |= ask(part)
        answers = {key: self._wait(futures[key], deadline, doing, where(self.cluster, key)) for key in keys}
        codes: dict[_Key, int] = {}
        for key, future in futures.items():
            error = future.exception() if future.done() else None
            if isinstance(error, KafkaException):
                codes[key] = error.args[0].code()
            elif error is None and no_answer(answers[key]):
                # librdkafka calls it a success when the leader's connection is lost while it waits.
                codes[key] = LocalCode.TRANSPORT
                answers[key] = error_for_code(LocalCode.TRANSPORT, where=where(self.cluster, key), doing=doing)
        return answers, codes

    def _changed(
        self, futures: Mapping[str, Future[Any]], deadline: float, doing: str
    ) -> dict[str, MirrorError | None]:
        outcome = {
            topic: self._wait(future, deadline, doing, _topic_where(self.cluster, topic))
            for topic, future in futures.items()
        }
        _raise_if_unreachable(outcome.values())
        return outcome

    def _wait(self, future: Future[Any], deadline: float, doing: str, where: Where) -> Any:
        """A future's result, or its error as a value.

        Raises:
            AuthenticationError: the cluster refused us while we waited.
        """
        # librdkafka ends every request in time itself; the extra second is for its own delays.
        while not future.done() and time.monotonic() < deadline + 1:
            try:
                future.exception(_LOOK_SECONDS)
            except TimeoutError:
                self._client().poll(0)
                self._errors.raise_refusal()
        if not future.done():
            return self._errors.unreachable(doing)
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, KafkaException):
            raise error
        self._client().poll(0)
        return self._failure(error, doing, where)

    def _failure(self, error: KafkaException, doing: str, where: Where | None = None) -> MirrorError:
        self._errors.raise_refusal()
        named = error_for(error.args[0], where=where or Where(cluster=self.cluster), doing=doing)
        return self._errors.unreachable(doing) if isinstance(named, BrokerUnreachableError) else named


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.1)


def _topic_where(cluster: str, topic: str) -> Where:
    return Where(cluster=cluster, topic=topic)


def _partition_where(cluster: str, partition: TopicPartition) -> Where:
    return Where(cluster=cluster, topic=partition.topic, partition=partition.partition)


def _passes(code: int) -> bool:
    # A missing topic is an answer. Negative codes have used up the whole wait already.
    return code > 0 and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_retriable(code)


def _raise_if_unreachable(answers: Iterable[Any]) -> None:
    """When not one item could be asked for, it is the cluster that is away."""
    collected = list(answers)
    if collected and all(isinstance(answer, BrokerUnreachableError) for answer in collected):
        raise collected[0]
