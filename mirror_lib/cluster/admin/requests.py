"""Administrative requests over librdkafka with bounded time: retries, rejections and lost brokers.

If a broker is lost during a request, librdkafka waits until the request's timeout, so every read-only request first
gets a part of the time and is then retried.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mirror_lib.cluster.admin.librdkafka_errors import ClientErrors
from mirror_lib.cluster.admin.results import batches, no_answer
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode, LocalCode
from mirror_lib.cluster.protocol.kafka_errors import error_for, error_for_code, is_retriable
from mirror_lib.errors import BrokerUnreachableError, MirrorError, Where
from mirror_lib.topology.access import Grant

_Key = TypeVar("_Key")

#: The wait for a cluster that has never responded is shorter than for a slow one.
_FIRST_CONTACT_SECONDS = 10.0
#: Interval in seconds at which a wait checks if the cluster has rejected the client.
_LOOK_SECONDS = 0.1
#: For each attempt: a pause in seconds, and its share of the total time. All but the last add up to the total; the last
#: is for attempts that failed quickly with errors that pass.
_ATTEMPTS = ((0.0, 1 / 6), (0.0, 1 / 6), (0.1, 1 / 3), (0.3, 1 / 3), (0.6, 1.0))


#: Maximum number of concurrent requests of one question.
_REQUESTS_UNDER_WAY = 8
#: Timeout of each further request of a question after a broker has not responded to one: all of them may wait for it.
_AFTER_SILENCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Question(Generic[_Key]):
    """One kind of request for many topics or partitions."""

    #: Continues the sentence "could not ...".
    doing: str
    #: Maximum number of items in one request.
    at_once: int
    #: Sends a request for some items with a timeout in seconds.
    ask: Callable[[Sequence[_Key], float], Mapping[_Key, Future[Any]]]
    #: The place of an error.
    where: Callable[[_Key], Where]
    #: The permission that the user needs.
    needs: Callable[[_Key], Grant]
    #: Converts a result as soon as it arrives; None keeps it.
    read: Callable[[_Key, Any], Any] | None = None


class AdminCalls:
    """A librdkafka admin client, with a timeout for each call."""

    def __init__(self, connection: Connection, timeout_seconds: float) -> None:
        self._connection = connection
        self._timeout = timeout_seconds
        self._errors = ClientErrors(connection)
        self._native: AdminClient | None = None
        self._reached = False
        self._cluster_id: str | None = None

    @property
    def client(self) -> AdminClient:
        """The native client; it starts to connect on first use.

        Raises:
            ConfigurationError: librdkafka rejects the connection's properties.
        """
        if self._native is None:
            self._native = self._errors.new_client(AdminClient, {}, "the client", self._where)
        return self._native

    def close(self) -> None:
        """Release the native client; the next call creates a new one."""
        self._native, self._reached = None, False

    def begin(self) -> float:
        """Make sure that the cluster responds; return the deadline of a call that starts now."""
        deadline = time.monotonic() + self._timeout
        if not self._reached:
            self.describe_cluster()
        elif self._brokers_lost():
            self._renew(self._timeout * _ATTEMPTS[0][1])
        return deadline

    def describe_cluster(self) -> Any:
        """The cluster's id and brokers.

        Raises:
            BrokerUnreachableError: no broker responded.
            AuthenticationError: the cluster rejected the client.
        """
        whole = self._timeout if self._reached else min(self._timeout, _FIRST_CONTACT_SECONDS)
        response: Any = None
        for seconds in self.attempts(time.monotonic() + whole, whole):
            future = self.client.describe_cluster(request_timeout=seconds)
            response = self.wait(future, seconds, "reach the cluster", self._where)
            if not isinstance(response, MirrorError):
                self._reached = True
                self._cluster_id = response.cluster_id
                return response
            if not response.retriable:
                break
        raise response

    def cluster_id(self) -> str | None:
        """The cluster id, from the first response; None before Kafka 0.10.1.

        Raises:
            BrokerUnreachableError: no broker responded.
            AuthenticationError: the cluster rejected the client.
        """
        if self._cluster_id is None:
            self.describe_cluster()
        return self._cluster_id

    def attempts(self, deadline: float, whole: float | None = None) -> Iterator[float]:
        """Yield the timeout in seconds of each attempt at a call, after the pause before it.

        If an attempt used all its time, the next one goes to the brokers that are up now.
        """
        waited_in_vain = False
        for pause, part in _ATTEMPTS:
            if time.monotonic() + pause >= deadline:
                return
            time.sleep(pause)
            seconds = min((whole or self._timeout) * part, max(deadline - time.monotonic(), 0.1))
            if waited_in_vain:
                self._renew(seconds)
            started = time.monotonic()
            yield seconds
            waited_in_vain = time.monotonic() - started >= seconds * 0.9

    def responses(self, question: Question[_Key], keys: Sequence[_Key], deadline: float) -> dict[_Key, Any]:
        """A result or an error for every key; retriable errors are retried.

        Raises:
            BrokerUnreachableError: there is no result for any key.
        """
        found: dict[_Key, Any] = {}
        again = keys
        for seconds in self.attempts(deadline):
            more, codes = self.ask_once(question, again, seconds)
            found |= more
            # A missing topic is a result.
            again = [
                key
                for key, code in codes.items()
                if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_retriable(code)
            ]
            if not again:
                break
        raise_if_unreachable(found.values())
        return found

    def ask_once(
        self, question: Question[_Key], keys: Sequence[_Key], seconds: float
    ) -> tuple[dict[_Key, Any], dict[_Key, int]]:
        """A result or an error for every key, and the codes of the errors.

        Args:
            seconds: for each request. Only some requests are in flight, and their futures are released: a future for
                each of a hundred thousand partitions would need more memory than all results.
        """
        found: dict[_Key, Any] = {}
        codes: dict[_Key, int] = {}
        under_way: deque[tuple[Mapping[_Key, Future[Any]], float]] = deque()
        for part in batches(keys, question.at_once):
            if len(under_way) == _REQUESTS_UNDER_WAY:
                self._collect(question, *under_way.popleft(), found, codes)
                # No broker responds: each further request would take the full timeout.
                if len(codes) == len(found) and set(codes.values()) == {LocalCode.TIMED_OUT}:
                    break
                if LocalCode.TIMED_OUT in codes.values():
                    seconds = min(seconds, _AFTER_SILENCE_SECONDS)
            under_way.append((question.ask(part, seconds), time.monotonic() + seconds))
        while under_way:
            self._collect(question, *under_way.popleft(), found, codes)
        for key in keys[len(found) :]:
            codes[key] = LocalCode.TIMED_OUT
            found[key] = self._errors.unreachable(question.doing)
        return found, codes

    def _collect(
        self,
        question: Question[_Key],
        futures: Mapping[_Key, Future[Any]],
        until: float,
        found: dict[_Key, Any],
        codes: dict[_Key, int],
    ) -> None:
        """Wait for requests that were sent together."""
        for key, future in futures.items():
            code = None
            if future.done() and future.exception() is None:
                response = future.result()
            else:
                left = max(until - time.monotonic(), 0.0)
                response = self.wait(future, left, question.doing, question.where(key), question.needs(key))
                code = _code(future)
            if code is not None:
                codes[key] = code
            elif no_answer(response):
                # librdkafka reports success if the connection to the leader is lost while it waits.
                codes[key] = LocalCode.TRANSPORT
                response = error_for_code(LocalCode.TRANSPORT, where=question.where(key), doing=question.doing)
            elif question.read is not None:
                response = question.read(key, response)
            found[key] = response

    def wait(self, future: Future[Any], seconds: float, doing: str, where: Where, needs: Grant | None = None) -> Any:
        """A future's result, or its error as a value.

        Args:
            needs: the permission that the user needs, for errors.

        Raises:
            AuthenticationError: the cluster rejected the client during the wait.
        """
        # librdkafka enforces each request's timeout; the extra second is for its own delays.
        until = time.monotonic() + seconds + 1
        while not future.done() and time.monotonic() < until:
            try:
                future.exception(_LOOK_SECONDS)
            except TimeoutError:
                self.client.poll(0)
                self._errors.raise_refusal()
        if not future.done():
            return self._errors.unreachable(doing)
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, KafkaException):
            raise error
        return self.failure(error, doing, where, needs)

    def failure(
        self, error: KafkaException, doing: str, where: Where | None = None, needs: Grant | None = None
    ) -> MirrorError:
        """The project's error for one of librdkafka's.

        Raises:
            AuthenticationError: the cluster rejected the client, which librdkafka's error does not show.
        """
        self.client.poll(0)
        self._errors.raise_refusal()
        named = error_for(error.args[0], where=where or self._where, doing=doing, needs=needs)
        return self._errors.unreachable(doing) if isinstance(named, BrokerUnreachableError) else named

    def _brokers_lost(self) -> bool:
        """True if librdkafka has lost a connection since the last call: its cache may be outdated."""
        self.client.poll(0)
        return self._errors.lost_brokers()

    def _renew(self, seconds: float) -> None:
        """Refresh the list of brokers, if any of them responds.

        librdkafka sends most administrative requests to the controller in its cache, even if that is long gone. Only
        the metadata of all topics is requested from any broker that is up; a request for one topic might create it.
        """
        with suppress(KafkaException):
            self.client.list_topics(timeout=seconds)

    @property
    def _where(self) -> Where:
        return Where(cluster=self._connection.cluster)


def raise_if_unreachable(responses: Iterable[Any]) -> None:
    """Raise if not a single item has a result: then the cluster is unreachable."""
    collected = list(responses)
    if collected and all(isinstance(response, BrokerUnreachableError) for response in collected):
        raise collected[0]


def _code(future: Future[Any]) -> int | None:
    """The error code of a request; a request without a response has timed out."""
    if not future.done():
        return LocalCode.TIMED_OUT
    error = future.exception()
    return int(error.args[0].code()) if isinstance(error, KafkaException) else None
