"""Writes to small topics with every record acknowledged."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

import confluent_kafka

from mirror_lib.cluster.admin.librdkafka_errors import ClientErrors
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for
from mirror_lib.cluster.topics.records import NewRecord, RecordPlace, leaderless_error
from mirror_lib.errors import (
    BrokerUnreachableError,
    MirrorError,
    Where,
)
from mirror_lib.topology.access import Grant, Operation

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
_LOOK_SECONDS = 1.0
#: Syslog's number. librdkafka's logged errors are also reported as errors, and very often while a broker is down.
_CRITICAL = 2


_PRODUCER_SETTINGS: Mapping[str, Any] = {"acks": "all", "linger.ms": 1, "allow.auto.create.topics": False}
_IDEMPOTENT: Mapping[str, Any] = {"enable.idempotence": True}
#: Keeps the order when a request is retried, but a record may then be written twice.
_ONE_IN_FLIGHT: Mapping[str, Any] = {"max.in.flight": 1}


class SmallTopicWriter:
    """Writes records with all acknowledgements, in the given order within each partition."""

    def __init__(self, connection: Connection, topic: str, *, timeout: float = 30.0, exactly_once: bool = True) -> None:
        """Args:
        timeout: maximum seconds of one call.
        exactly_once: write no record twice when a request is retried. The first write takes half a second unless the
            writer was started some time before, since librdkafka requests its producer id only at that interval.
        """
        self.topic = topic
        self._connection = connection
        self._timeout = timeout
        self._where = Where(cluster=connection.cluster, topic=topic)
        self._errors = ClientErrors(connection)
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

    def _new(self, kind: Any, settings: Mapping[str, Any]) -> Any:
        own = {"error_cb": self._errors.note, "logger": _log, "log_level": _CRITICAL}
        return self._errors.new_client(kind, {**settings, **own}, f"the client for {self.topic}", self._where)

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
                if isinstance(failure, BrokerUnreachableError) and time.monotonic() < deadline:
                    continue
                raise failure from error
            described = metadata.topics[self.topic]
            if described.error is None:
                return len(described.partitions)
            if described.error.code() != ErrorCode.LEADER_NOT_AVAILABLE or not time.monotonic() < deadline:
                raise self._failure(described.error, doing)
            time.sleep(_POLL_SECONDS)

    def _no_response_error(self, client: Any, doing: str) -> MirrorError:
        """The error for a missing response: librdkafka waits silently for a leader, as for a broker."""
        try:
            partitions = client.list_topics(self.topic, timeout=_LOOK_SECONDS).topics[self.topic].partitions
        except confluent_kafka.KafkaException:
            return self._errors.unreachable(doing)
        leaderless = sorted(number for number, partition in partitions.items() if partition.leader < 0)
        if not leaderless:
            return self._errors.unreachable(doing)
        return leaderless_error(self._where, doing, leaderless)

    def _failure(self, error: confluent_kafka.KafkaError, doing: str) -> MirrorError:
        """The project's error.

        Raises:
            AuthenticationError: the cluster has rejected the login, which the error itself may not show.
        """
        self._errors.raise_refusal()
        needs = Grant.on_topic(Operation.WRITE, self.topic)
        if error.code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            # Only idempotent writers need a permission on the cluster (KIP-679).
            needs = Grant.on_cluster(Operation.IDEMPOTENT_WRITE)
        named = error_for(error, where=self._where, doing=doing, needs=needs)
        return self._errors.unreachable(doing) if isinstance(named, BrokerUnreachableError) else named


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
