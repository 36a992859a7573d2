"""Reads small topics as a whole, and writes to them with every record acknowledged."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import confluent_kafka

from mirror_lib.cluster.admin import ClientErrors
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol import ErrorCode, LocalCode, error_for
from mirror_lib.errors import (
    BrokerUnreachableError,
    MirrorError,
    TransientError,
    Where,
)
from mirror_lib.topology import Grant, Operation

_log = logging.getLogger(__name__)

#: librdkafka requires a group id even if, as here, no group is joined and nothing is committed.
_GROUP = "mirror-internal-reader"
#: The end of a topic is only detected when the broker responds to an empty fetch: keep that wait short.
_FETCH_WAIT_MS = 10
_RECORDS_AT_ONCE = 10_000
_POLL_SECONDS = 0.1
_LOOK_SECONDS = 1.0
#: Syslog's number. librdkafka's logged errors are also reported as errors, and very often while a broker is down.
_CRITICAL = 2
_GROUP_ERRORS = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class TopicRecord(NamedTuple):
    """One record of a small topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    #: Epoch milliseconds; None if it has none.
    timestamp_ms: int | None = None


class NewRecord(NamedTuple):
    """One record to write."""

    partition: int
    key: bytes
    #: None deletes the key (compaction).
    value: bytes | None
    #: Epoch milliseconds; None uses the client's time of writing.
    timestamp_ms: int | None = None


class RecordPlace(NamedTuple):
    """Partition and offset of a record."""

    partition: int
    offset: int


class LeaderlessPartitions(NamedTuple):
    """The partitions of a topic that were not read because they have no leader."""

    numbers: frozenset[int]
    #: The number of partitions of the topic.
    of: int
    error: MirrorError


class _Client:
    """The common part of reader and writer: one librdkafka client, and the errors of its callback."""

    #: The required permission on the topic.
    _operation: Operation

    def __init__(self, connection: Connection, topic: str, *, timeout: float) -> None:
        self.topic = topic
        self._connection = connection
        self._timeout = timeout
        self._where = Where(cluster=connection.cluster, topic=topic)
        self._errors = ClientErrors(connection)
        self._given_up = False

    def give_up(self) -> None:
        """Stop another thread's wait for this client, which is not needed any more."""
        self._given_up = True

    def _may_continue(self, deadline: float) -> bool:
        return not self._given_up and time.monotonic() < deadline

    def _new(self, kind: Any, settings: Mapping[str, Any]) -> Any:
        own = {"error_cb": self._note, "logger": _log, "log_level": _CRITICAL}
        return self._errors.new_client(kind, {**settings, **own}, f"the client for {self.topic}", self._where)

    def _note(self, error: confluent_kafka.KafkaError) -> None:
        if error.code() not in _GROUP_ERRORS:
            self._errors.note(error)

    def _partitions(self, client: Any) -> int:
        """The number of partitions of the topic.

        Raises:
            TopicMissingError: the topic does not exist.
        """
        doing = f"look up {self.topic}"
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                # In short steps: a rejected login is reported to the error callback, which only `poll` calls.
                metadata = client.list_topics(self.topic, timeout=min(_LOOK_SECONDS, self._timeout))
            except confluent_kafka.KafkaException as error:
                client.poll(0)
                failure = self._failure(error.args[0], doing)
                if isinstance(failure, BrokerUnreachableError) and self._may_continue(deadline):
                    continue
                raise failure from error
            described = metadata.topics[self.topic]
            if described.error is None:
                return len(described.partitions)
            if described.error.code() != ErrorCode.LEADER_NOT_AVAILABLE or not self._may_continue(deadline):
                raise self._failure(described.error, doing)
            time.sleep(_POLL_SECONDS)

    def _no_response_error(self, client: Any, doing: str) -> MirrorError:
        """The error for a missing response: librdkafka waits silently for a leader, as for a broker."""
        leaderless = self._leaderless(client)
        return self._no_leader_error(leaderless, doing) if leaderless else self._errors.unreachable(doing)

    def _leaderless(self, client: Any) -> list[int]:
        """The partitions without a leader; none if the cluster does not respond."""
        try:
            partitions = client.list_topics(self.topic, timeout=_LOOK_SECONDS).topics[self.topic].partitions
        except confluent_kafka.KafkaException:
            return []
        return sorted(number for number, partition in partitions.items() if partition.leader < 0)

    def _no_leader_error(self, leaderless: Sequence[int], doing: str) -> MirrorError:
        one = len(leaderless) == 1
        which = f"partition {leaderless[0]} has" if one else f"partitions {', '.join(map(str, leaderless))} have"
        return TransientError(
            f"could not {doing}: {which} no leader, because no broker with an in-sync replica runs.",
            where=replace(self._where, partition=leaderless[0]),
            action=f"Start the brokers of its replicas: `kafka-topics.sh --describe --topic {self.topic} "
            "--unavailable-partitions` lists them. A topic with one replica needs this one broker.",
        )

    def _failure(self, error: confluent_kafka.KafkaError, doing: str) -> MirrorError:
        """The project's error.

        Raises:
            AuthenticationError: the cluster has rejected the login, which the error itself may not show.
        """
        self._errors.raise_refusal()
        needs = Grant.on_topic(self._operation, self.topic)
        if error.code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            # Only idempotent writers need a permission on the cluster (KIP-679).
            needs = Grant.on_cluster(Operation.IDEMPOTENT_WRITE)
        named = error_for(error, where=self._where, doing=doing, needs=needs)
        return self._errors.unreachable(doing) if isinstance(named, BrokerUnreachableError) else named


class HiddenRecordsError(TransientError):
    """An open transaction hides the end of a topic from read-committed consumers."""

    #: The affected partitions.
    partitions: frozenset[int] = frozenset()


class SmallTopicReader(_Client):
    """Reads a topic to its end without joining a group or committing. Read committed."""

    _operation = Operation.READ

    def __init__(self, connection: Connection, topic: str, *, timeout: float = 30.0) -> None:
        super().__init__(connection, topic, timeout=timeout)
        self._consumer: Any = None

    def close(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def read_led(self, seconds: float) -> tuple[list[TopicRecord], dict[int, int], LeaderlessPartitions | None]:
        """As `read` from the beginning, without the partitions that have no leader.

        Args:
            seconds: how long a partition may be without a leader.

        Returns:
            As `read`; and the partitions that are left out.
        """
        records, next_offsets, leaderless = self._read({}, seconds)
        if not leaderless:
            return records, next_offsets, None
        error = self._no_leader_error(sorted(leaderless), f"read {self.topic}")
        return (
            records,
            next_offsets,
            LeaderlessPartitions(frozenset(leaderless), len({*next_offsets, *leaderless}), error),
        )

    def read(self, start: Mapping[int, int]) -> tuple[list[TopicRecord], dict[int, int]]:
        """All records from given offsets to the end, and the offsets to continue from.

        Records of one partition come in order.

        Args:
            start: offsets by partition; other partitions are read from the beginning.

        Raises:
            TopicMissingError: the topic does not exist.
            HiddenRecordsError: a transaction is still open, and did not end in time.
            MirrorError: the end was not reached in time, or the cluster rejected the request.
        """
        records, next_offsets, _ = self._read(start, None)
        return records, next_offsets

    def _read(
        self, start: Mapping[int, int], leaderless_seconds: float | None
    ) -> tuple[list[TopicRecord], dict[int, int], set[int]]:
        if self._consumer is None:
            self._consumer = self._new(confluent_kafka.Consumer, _CONSUMER_SETTINGS)
        consumer = self._consumer
        partitions = range(self._partitions(consumer))
        consumer.assign(
            [confluent_kafka.TopicPartition(self.topic, partition, start.get(partition, 0)) for partition in partitions]
        )
        try:
            return self._read_to_end(consumer, set(partitions), leaderless_seconds)
        finally:
            consumer.unassign()

    def _read_to_end(
        self, consumer: Any, unfinished: set[int], leaderless_seconds: float | None
    ) -> tuple[list[TopicRecord], dict[int, int], set[int]]:
        """Records, the offsets to continue from, and the partitions that are left out.

        Args:
            leaderless_seconds: time after which partitions without a leader are left out; None waits for them.
        """
        doing = f"read {self.topic}"
        records: list[TopicRecord] = []
        next_offsets: dict[int, int] = {}
        began = time.monotonic()
        deadline = began + self._timeout
        while unfinished:
            for message in _next_messages(consumer):
                error = message.error()
                if error is None:
                    place = message.partition(), message.offset()
                    kind, timestamp = message.timestamp()
                    stored_at = timestamp if kind != confluent_kafka.TIMESTAMP_NOT_AVAILABLE else None
                    records.append(TopicRecord(*place, message.key(), message.value(), stored_at))
                elif error.code() == LocalCode.PARTITION_EOF:
                    partition = message.partition()
                    next_offsets[partition] = message.offset()
                    if message.offset() >= self._high_watermark(consumer, partition):
                        unfinished.discard(partition)
                elif error.code() not in _GROUP_ERRORS:
                    raise self._failure(error, doing)
            self._errors.raise_refusal()
            if unfinished and not self._may_continue(deadline):
                raise self._too_slow(consumer, unfinished, next_offsets, doing)
            is_late = leaderless_seconds is not None and time.monotonic() - began > leaderless_seconds
            if unfinished and is_late and unfinished <= set(self._leaderless(consumer)):
                break
        return records, next_offsets, unfinished

    def _high_watermark(self, consumer: Any, partition: int) -> int:
        place = confluent_kafka.TopicPartition(self.topic, partition)
        _, high = consumer.get_watermark_offsets(place, cached=True)
        return int(high)

    def _too_slow(
        self, consumer: Any, unfinished: set[int], next_offsets: Mapping[int, int], doing: str
    ) -> MirrorError:
        if not unfinished <= set(next_offsets):
            return self._no_response_error(consumer, doing)
        hidden = ", ".join(map(str, sorted(unfinished)))
        error = HiddenRecordsError(
            f"a transaction is still open in partitions {hidden}, and hides later records.",
            where=self._where,
            action="Stop MirrorMaker 2 for this flow. An abandoned transaction ends after its timeout; for one that "
            "does not, see `kafka-transactions.sh find-hanging` (docs/troubleshooting.md, transient).",
        )
        error.partitions = frozenset(unfinished)
        return error


def _next_messages(consumer: Any) -> list[Any]:
    """The messages that have arrived. `consume` alone would wait for its full number of messages or its full time."""
    first = consumer.poll(_POLL_SECONDS)
    return [] if first is None else [first, *consumer.consume(_RECORDS_AT_ONCE, 0)]


_CONSUMER_SETTINGS: Mapping[str, Any] = {
    "group.id": _GROUP,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": _FETCH_WAIT_MS,
    # The next fetch should not wait until a burst of records has been processed.
    "queued.min.messages": 1_000_000,
}

_PRODUCER_SETTINGS: Mapping[str, Any] = {"acks": "all", "linger.ms": 1, "allow.auto.create.topics": False}
_IDEMPOTENT: Mapping[str, Any] = {"enable.idempotence": True}
#: Keeps the order when a request is retried, but a record may then be written twice.
_ONE_IN_FLIGHT: Mapping[str, Any] = {"max.in.flight": 1}


class SmallTopicWriter(_Client):
    """Writes records with all acknowledgements, in the given order within each partition."""

    _operation = Operation.WRITE

    def __init__(self, connection: Connection, topic: str, *, timeout: float = 30.0, exactly_once: bool = True) -> None:
        """Args:
        timeout: maximum seconds of one call.
        exactly_once: write no record twice when a request is retried. The first write takes half a second unless the
            writer was started some time before, since librdkafka requests its producer id only at that interval.
        """
        super().__init__(connection, topic, timeout=timeout)
        self._guarantee = _IDEMPOTENT if exactly_once else _ONE_IN_FLIGHT
        self._producer: Any = None

    def start(self) -> None:
        """Start to connect, in the background."""
        self._client()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; nothing is in flight outside of `write`."""
        self._producer = None

    def partitions(self) -> int:
        """The current number of partitions of the topic.

        Raises:
            TopicMissingError: the topic does not exist.
        """
        return self._partitions(self._client())

    def write(self, records: Iterable[NewRecord]) -> tuple[RecordPlace, ...]:
        """Write and wait until all records are acknowledged; return the place of each, in the given order.

        Raises:
            MirrorError: at least one was not acknowledged; others may have been.
        """
        producer = self._client()
        places: list[RecordPlace | confluent_kafka.KafkaError | None] = []
        for index, record in enumerate(records):
            places.append(None)

            def on_delivery(error: Any, message: Any, index: int = index) -> None:
                places[index] = error or RecordPlace(message.partition(), message.offset())

            self._produce(producer, record, on_delivery)
        # librdkafka stops by itself after the timeout; the extra second is for its own delays.
        producer.flush(self._timeout + 1)
        return tuple(self._check_delivery(place) for place in places)

    def _produce(self, producer: Any, record: NewRecord, delivered: Any) -> None:
        while True:
            try:
                producer.produce(
                    self.topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    timestamp=record.timestamp_ms or 0,
                    on_delivery=delivered,
                )
            except BufferError:
                # The queue is full: acknowledgements make room.
                producer.poll(_POLL_SECONDS)
            except confluent_kafka.KafkaException as error:
                raise self._failure(error.args[0], self._doing_text) from error
            else:
                producer.poll(0)
                return

    @property
    def _doing_text(self) -> str:
        return f"write to {self.topic}"

    def _check_delivery(self, place: RecordPlace | confluent_kafka.KafkaError | None) -> RecordPlace:
        if isinstance(place, RecordPlace):
            return place
        if place is None:
            self._errors.raise_refusal()
            raise self._no_response_error(self._client(), self._doing_text)
        failure = self._failure(place, self._doing_text)
        if isinstance(failure, BrokerUnreachableError):
            raise self._no_response_error(self._client(), self._doing_text)
        raise failure

    def _client(self) -> Any:
        if self._producer is None:
            timeout = {"message.timeout.ms": int(self._timeout * 1000)}
            settings = {**_PRODUCER_SETTINGS, **self._guarantee, **timeout}
            self._producer = self._new(confluent_kafka.Producer, settings)
        return self._producer


class InternalTopicWriter:
    """Base of the writers of MM2's internal topics, which use partition 0 alone.

    A retried request may write a record twice: readers accept that, and an idempotent producer would take half a second
    more for each round.
    """

    def __init__(self, connection: Connection, topic: str, *, timeout: float = 30.0) -> None:
        """Args:
        timeout: maximum seconds of one call.
        """
        self.topic = topic
        self._writer = SmallTopicWriter(connection, topic, timeout=timeout, exactly_once=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def _write(self, records: Iterable[NewRecord]) -> tuple[RecordPlace, ...]:
        self._writer.partitions()
        return self._writer.write(records)
