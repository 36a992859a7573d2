"""Kafka requests on raw record batches, spoken through aiokafka's low-level client.

This is the only module that knows `aiokafka.client` and `aiokafka.protocol`, which are semi-internal: contract tests
(`tests/integration/cluster/test_raw_client.py`) hold every request against a real broker. Fetch and Produce carry the
data, so they are encoded and decoded here by hand: payloads stay memoryviews of the network frame on the way in and
are joined once on the way out.
"""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple, Self

import aiokafka.errors as aiokafka_errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import create_conn
from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from aiokafka.protocol.types import Schema

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.error_codes import ErrorCode
from mirror_lib.cluster.kafka_errors import error_for_code
from mirror_lib.errors import AuthenticationError, BrokerUnreachableError, ClusterError, RetriesExhaustedError, Where
from mirror_lib.topology.names import TopicPartition

_FETCH, _PRODUCE, _DESCRIBE_LOG_DIRS = 1, 0, 35
#: Kafka 2.4 is the first broker that speaks these; every supported broker is newer.
_FETCH_VERSION, _PRODUCE_VERSION, _LOG_DIRS_VERSION = 11, 7, 1

_COORDINATOR_RETRIES = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)

_FETCH_HEAD = struct.Struct(">ihii")
_FETCH_PARTITION = struct.Struct(">ihqqqi")
_FETCH_TAIL = struct.Struct(">ii")
_ABORTED = struct.Struct(">qq")
_PRODUCED_PARTITION = struct.Struct(">ihqqq")
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


class FetchRequestPartition(NamedTuple):
    """One partition to read: from `offset`, at most about `max_bytes` (the broker always returns one whole batch)."""

    topic: str
    partition: int
    offset: int
    max_bytes: int


class FetchedPartition(NamedTuple):
    """What a broker returned for one partition. `records` is a view of the network frame: use it, then let it go."""

    topic: str
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start: int
    #: (producer id, first offset) of transactions that were aborted; only filled when reading committed.
    aborted: tuple[tuple[int, int], ...]
    records: memoryview


class ProducedPartition(NamedTuple):
    """The broker's answer to one batch: where it was appended, or why not."""

    topic: str
    partition: int
    error_code: int
    base_offset: int
    log_start: int


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer id with its epoch: what a broker checks to refuse an older writer (KIP-98)."""

    producer_id: int
    epoch: int


class _HandEncoded(RequestStruct):  # type: ignore[misc]
    """A request of one fixed version whose body has been encoded already."""

    API_KEY = -1
    API_VERSION = 0
    RESPONSE_TYPE = Response
    SCHEMA = Schema()

    def __init__(self, body: bytes) -> None:
        self._body = body

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Self:
        low, high = versions.get(self.API_KEY, (0, -1))
        if not low <= self.API_VERSION <= high:
            raise aiokafka_errors.IncompatibleBrokerVersion(
                f"the broker speaks versions {low} to {high} of request {self.API_KEY}, not {self.API_VERSION}"
            )
        return self

    def encode(self) -> bytes:
        return self._body

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._body)} bytes)"


class _HandDecoded(Response):  # type: ignore[misc]
    API_KEY = -1
    API_VERSION = 0
    partitions: list[Any]

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> Self:
        stream = BytesIO(data) if isinstance(data, bytes) else data
        response = cls.__new__(cls)
        response.partitions = cls.parse(stream.getbuffer(), stream.tell())
        return response

    @staticmethod
    def parse(view: memoryview, position: int) -> list[Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.partitions)} partitions)"


def _string(view: memoryview, position: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(view, position)
    position += 2
    return str(view[position : position + length], "utf-8"), position + length


def _encode_string(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


class _FetchResponse(_HandDecoded):
    API_KEY, API_VERSION = _FETCH, _FETCH_VERSION

    @staticmethod
    def parse(view: memoryview, position: int) -> list[FetchedPartition]:
        _throttle, error_code, _session, topics = _FETCH_HEAD.unpack_from(view, position)
        if error_code:
            raise error_for_code(error_code, where=Where(), doing="fetch")
        position += _FETCH_HEAD.size
        result = []
        for _ in range(topics):
            topic, position = _string(view, position)
            (count,) = _INT32.unpack_from(view, position)
            position += 4
            for _ in range(count):
                partition, code, high_watermark, last_stable, log_start, aborted_count = _FETCH_PARTITION.unpack_from(
                    view, position
                )
                position += _FETCH_PARTITION.size
                aborted = []
                for _ in range(max(aborted_count, 0)):
                    aborted.append(_ABORTED.unpack_from(view, position))
                    position += _ABORTED.size
                _replica, size = _FETCH_TAIL.unpack_from(view, position)
                position += _FETCH_TAIL.size
                size = max(size, 0)
                records = view[position : position + size]
                position += size
                result.append(
                    FetchedPartition(
                        topic, partition, code, high_watermark, last_stable, log_start, tuple(aborted), records
                    )
                )
        return result


class _FetchRequest(_HandEncoded):
    API_KEY, API_VERSION, RESPONSE_TYPE = _FETCH, _FETCH_VERSION, _FetchResponse


class _ProduceResponse(_HandDecoded):
    API_KEY, API_VERSION = _PRODUCE, _PRODUCE_VERSION

    @staticmethod
    def parse(view: memoryview, position: int) -> list[ProducedPartition]:
        (topics,) = _INT32.unpack_from(view, position)
        position += 4
        result = []
        for _ in range(topics):
            topic, position = _string(view, position)
            (count,) = _INT32.unpack_from(view, position)
            position += 4
            for _ in range(count):
                partition, code, base, _append_time, log_start = _PRODUCED_PARTITION.unpack_from(view, position)
                position += _PRODUCED_PARTITION.size
                result.append(ProducedPartition(topic, partition, code, base, log_start))
        return result


class _ProduceRequest(_HandEncoded):
    API_KEY, API_VERSION, RESPONSE_TYPE = _PRODUCE, _PRODUCE_VERSION, _ProduceResponse


class _LogDirsResponse(_HandDecoded):
    API_KEY, API_VERSION = _DESCRIBE_LOG_DIRS, _LOG_DIRS_VERSION

    @staticmethod
    def parse(view: memoryview, position: int) -> list[tuple[str, int, int]]:
        _throttle, directories = struct.unpack_from(">ii", view, position)
        position += 8
        result = []
        for _ in range(directories):
            position += 2
            _path, position = _string(view, position)
            (topics,) = _INT32.unpack_from(view, position)
            position += 4
            for _ in range(topics):
                topic, position = _string(view, position)
                (count,) = _INT32.unpack_from(view, position)
                position += 4
                for _ in range(count):
                    partition, size, _lag, is_future = struct.unpack_from(">iqqb", view, position)
                    position += 21
                    if not is_future:
                        result.append((topic, partition, size))
        return result


class _LogDirsRequest(_HandEncoded):
    API_KEY, API_VERSION, RESPONSE_TYPE = _DESCRIBE_LOG_DIRS, _LOG_DIRS_VERSION, _LogDirsResponse


class _Client(AIOKafkaClient):  # type: ignore[misc]
    """aiokafka's client, asking for brokers only: topics are asked for by name, and never created by asking."""

    async def _metadata_update(self, cluster_metadata: ClusterMetadata, topics: Any) -> bool:
        del topics
        for broker in list(self.cluster.brokers()):
            connection = await self._get_conn(broker.nodeId)
            if connection is None:
                continue
            try:
                metadata = await connection.send(MetadataRequest([], allow_auto_topic_creation=False))
            except (TimeoutError, aiokafka_errors.KafkaError):
                continue
            if metadata.brokers:
                cluster_metadata.update_metadata(metadata)
                return True
        cluster_metadata.failed_update(None)
        return False


def _by_topic(partitions: Sequence[Any]) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for item in partitions:
        grouped.setdefault(item[0], []).append(item)
    return grouped


class RawClient:
    """One cluster, seen as leaders and raw batches. Use as an async context manager inside one event loop.

    Every failure to reach a broker is raised as `BrokerUnreachableError`; per-partition error codes are returned as
    they are, since only the caller knows which of them may be retried.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: Any = None
        self._leaders: dict[TopicPartition, int] = {}
        self._coordinators: dict[str, int] = {}

    @property
    def cluster(self) -> str:
        """The alias of the cluster, for messages."""
        return self._connection.cluster

    async def __aenter__(self) -> Self:
        options = self._connection.aiokafka()
        self._client = _Client(metadata_max_age_ms=3_600_000, **options)
        try:
            await self._client.bootstrap()
        except aiokafka_errors.KafkaError as error:
            await self._client.close()
            raise await self._why_unreachable(options, error) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def _why_unreachable(self, options: dict[str, Any], error: Exception) -> ClusterError:
        """`bootstrap` keeps the reason to its log, so ask one broker again to tell refusal from silence."""
        arguments = {name: value for name, value in options.items() if name != "bootstrap_servers"}
        host, port, _ = self._client.hosts[0]
        try:
            connection = await create_conn(host, port, **arguments)
        except (
            aiokafka_errors.AuthenticationFailedError,
            aiokafka_errors.SaslAuthenticationFailed,
            aiokafka_errors.UnsupportedSaslMechanismError,
            aiokafka_errors.IllegalSaslStateError,
        ) as refusal:
            return AuthenticationError(
                f"the cluster refused our credentials: {refusal}.",
                where=Where(cluster=self.cluster),
                action="Check sasl.mechanism, sasl.jaas.config and the user on the cluster.",
            )
        except (TimeoutError, OSError, aiokafka_errors.KafkaError) as silence:
            error = silence
        else:
            connection.close()
        return self._unreachable(error, f"no broker of {', '.join(self._connection.bootstrap_servers)} answered")

    def _unreachable(self, error: BaseException, what: str) -> BrokerUnreachableError:
        return BrokerUnreachableError(
            f"{what}: {error or type(error).__name__}.",
            where=Where(cluster=self.cluster),
            action="Check that the brokers run and that bootstrap.servers and security.protocol are right.",
        )

    async def _send(self, node: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        try:
            return await self._client.send(node, request, group=group)
        except aiokafka_errors.IncompatibleBrokerVersion as error:
            raise ClusterError(
                f"broker {node} is too old: {error}.",
                where=Where(cluster=self.cluster),
                action="Kafka 2.4 is the oldest broker that can be copied from or to.",
            ) from error
        except (TimeoutError, aiokafka_errors.KafkaError, OSError) as error:
            raise self._unreachable(error, f"broker {node} did not answer") from error

    async def _ask_any_broker(self, request: Any) -> Any:
        """Send to one broker after the other until one answers."""
        failure = self._unreachable(LookupError("none is known"), "the cluster has no brokers")
        brokers = self.brokers()
        random.shuffle(brokers)
        for node in brokers:
            try:
                return await self._send(node, request)
            except BrokerUnreachableError as error:
                failure = error
        raise failure

    async def refresh_leaders(self, topics: Iterable[str]) -> dict[str, int]:
        """Ask for the leaders of some topics; returns the topics that could not be described, with the error code."""
        response = await self._ask_any_broker(MetadataRequest(sorted(set(topics)), allow_auto_topic_creation=False))
        self._client.cluster.update_metadata(response)
        failed: dict[str, int] = {}
        for topic in response.topics:
            error_code, name, partitions = topic[0], topic[1], topic[-1]
            if error_code:
                failed[name] = error_code
            for partition in partitions:
                key, leader = TopicPartition(name, partition[1]), partition[2]
                if leader >= 0:
                    self._leaders[key] = leader
                else:
                    self._leaders.pop(key, None)
        return failed

    def leader(self, partition: TopicPartition) -> int | None:
        """The broker that led this partition at the last refresh, None when unknown or without a leader."""
        return self._leaders.get(partition)

    def brokers(self) -> list[int]:
        """The ids of all brokers of the cluster."""
        return [broker.nodeId for broker in self._client.cluster.brokers()]

    async def fetch(
        self,
        node: int,
        partitions: Sequence[FetchRequestPartition],
        *,
        max_bytes: int,
        max_wait_ms: int,
        read_committed: bool,
        min_bytes: int = 1,
    ) -> list[FetchedPartition]:
        """Read raw batches from a leader (Fetch v11, without a session)."""
        head = (-1, max_wait_ms, min_bytes, max_bytes, int(read_committed), 0, -1)
        parts = [struct.pack(">iiiibii", *head)]
        grouped = _by_topic(partitions)
        parts.append(_INT32.pack(len(grouped)))
        for topic, wanted in grouped.items():
            parts += (_encode_string(topic), _INT32.pack(len(wanted)))
            parts += (struct.pack(">iiqqi", item.partition, -1, item.offset, -1, item.max_bytes) for item in wanted)
        parts.append(_INT32.pack(0) + _encode_string(""))
        response = await self._send(node, _FetchRequest(b"".join(parts)))
        fetched: list[FetchedPartition] = response.partitions
        return fetched

    async def produce(
        self, node: int, batches: Sequence[tuple[str, int, bytes | bytearray]], *, timeout_ms: int
    ) -> list[ProducedPartition]:
        """Append one ready-made batch to each of several partitions with acks=all (Produce v7, not transactional).

        Args:
            batches: topic, partition, complete magic-2 batch; at most one batch for a partition.
        """
        parts: list[bytes | bytearray] = [struct.pack(">hhi", -1, -1, timeout_ms)]
        grouped = _by_topic(batches)
        parts.append(_INT32.pack(len(grouped)))
        for topic, wanted in grouped.items():
            parts += (_encode_string(topic), _INT32.pack(len(wanted)))
            for _, partition, payload in wanted:
                parts += (struct.pack(">ii", partition, len(payload)), payload)
        response = await self._send(node, _ProduceRequest(b"".join(parts)))
        produced: list[ProducedPartition] = response.partitions
        return produced

    async def init_producer_id(self, transactional_id: str, *, deadline: float) -> ProducerIdentity:
        """Take over a transactional id: its producer id with a raised epoch (KIP-98).

        Args:
            deadline: `time.monotonic()` value after which a busy coordinator is given up.
        """
        request = InitProducerIdRequest(transactional_id, 60_000)
        response = await self._ask_coordinator(transactional_id, request, deadline, "take over transactional id")
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def fence(self, transactional_id: str, target: TopicPartition, *, deadline: float) -> ProducerIdentity:
        """Make every older epoch of this id refused on the partition, and everything it appended visible.

        An empty transaction is aborted: when the final InitProducerId returns, its marker is on the partition and
        replicated, so older epochs get INVALID_PRODUCER_EPOCH and the high watermark covers what they wrote. Uses one
        offset of the partition.
        """
        identity = await self.init_producer_id(transactional_id, deadline=deadline)
        held = (transactional_id, identity.producer_id, identity.epoch)
        add = AddPartitionsToTxnRequest(*held, [(target.topic, [target.partition])])
        await self._ask_coordinator(transactional_id, add, deadline, "open a fencing transaction with")
        end = EndTxnRequest(*held, False)
        await self._ask_coordinator(transactional_id, end, deadline, "abort the fencing transaction of")
        return await self.init_producer_id(transactional_id, deadline=deadline)

    async def _ask_coordinator(self, transactional_id: str, request: Any, deadline: float, doing: str) -> Any:
        pause = 0.02
        while True:
            try:
                node = await self._coordinator(transactional_id)
                response = await self._send(node, request, group=ConnectionGroup.COORDINATION)
                code = _coordinator_error(response)
            except BrokerUnreachableError:
                if time.monotonic() > deadline:
                    raise
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            if code == ErrorCode.NONE:
                return response
            where = Where(cluster=self.cluster)
            if code not in _COORDINATOR_RETRIES:
                raise error_for_code(code, where=where, doing=f"{doing} {transactional_id}")
            if time.monotonic() > deadline:
                raise RetriesExhaustedError(
                    f"the transaction coordinator could not {doing} {transactional_id} in time (error code {code}).",
                    where=where,
                    action="Check the brokers that hold __transaction_state; run again when they are healthy.",
                )
            if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                self._coordinators.pop(transactional_id, None)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 1.0)

    async def _coordinator(self, transactional_id: str) -> int:
        node = self._coordinators.get(transactional_id)
        if node is None:
            try:
                node = await self._client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
            except aiokafka_errors.TransactionalIdAuthorizationFailed as error:
                raise error_for_code(
                    error.errno, where=Where(cluster=self.cluster), doing=f"use transactional id {transactional_id}"
                ) from error
            except (TimeoutError, aiokafka_errors.KafkaError, OSError) as error:
                raise self._unreachable(error, "the transaction coordinator cannot be found") from error
            self._coordinators[transactional_id] = node
        return node

    async def log_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Bytes on disk of every partition of these topics: the largest replica's (DescribeLogDirs).

        Partitions are missing from the answer when we may not ask (cluster DESCRIBE is needed).
        """
        names = set(topics)
        sizes: dict[TopicPartition, int] = {}
        # Asking for all topics is one small request; naming them would need their partitions first.
        body = _INT32.pack(-1)
        for node in self.brokers():
            response = await self._send(node, _LogDirsRequest(body))
            for topic, partition, size in response.partitions:
                if topic in names:
                    key = TopicPartition(topic, partition)
                    sizes[key] = max(size, sizes.get(key, 0))
        return sizes


def _coordinator_error(response: Any) -> int:
    if hasattr(response, "error_code"):
        return int(response.error_code)
    codes = [code for _topic, partitions in response.errors for _partition, code in partitions]
    return next((int(code) for code in codes if code), ErrorCode.NONE)


@asynccontextmanager
async def open_clients(*connections: Connection) -> AsyncIterator[tuple[RawClient, ...]]:
    """Connect to several clusters at once, and leave none open when one of them fails."""
    clients = [RawClient(connection) for connection in connections]
    opened: list[RawClient] = []
    try:
        for client in clients:
            await client.__aenter__()
            opened.append(client)
        yield tuple(clients)
    finally:
        for client in opened:
            await client.__aexit__()
