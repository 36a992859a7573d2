"""Kafka requests on raw record batches, spoken through aiokafka's low-level client.

This is the only module that knows `aiokafka.client`, `aiokafka.conn` and `aiokafka.protocol`, which are semi-internal:
contract tests (`tests/integration/cluster/test_raw_client.py`) hold every request against a real broker. aiokafka makes
the connections and speaks all but the requests that carry data: those go over connections of their own.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import aiokafka.errors as aiokafka_errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from mirror_lib.cluster.acl_protocol import (
    DESCRIBE_ACLS,
    DESCRIBE_ACLS_VERSION,
    encode_describe_acls,
    parse_describe_acls,
)
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.data_connection import Buffer, DataConnection, frames_of_this_thread
from mirror_lib.cluster.data_protocol import (
    DESCRIBE_LOG_DIRS,
    EPOCH_VERSION,
    LIST_LOCAL_OFFSETS_VERSION,
    LIST_OFFSETS,
    LIST_OFFSETS_VERSION,
    LOG_DIRS_VERSION,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    PRODUCE_VERSION,
    ProducedPartition,
    by_topic,
    encode_epoch_ends,
    encode_list_end,
    encode_local_log_start,
    encode_log_dirs,
    encode_produce,
    parse_epoch_ends,
    parse_list_end,
    parse_local_log_start,
    parse_log_dirs,
    parse_produce,
    produce_throttle_ms,
)
from mirror_lib.cluster.error_codes import ErrorCode
from mirror_lib.cluster.fetch_protocol import (
    EPOCH_CHECKING_VERSION,
    FETCH,
    PLAIN_VERSION,
    FetchedPartition,
    FetchRequestPartition,
    encode_fetch,
    fetch_throttle_ms,
    parse_fetch,
)
from mirror_lib.cluster.kafka_errors import error_for_code
from mirror_lib.cluster.login_log import hide_logins
from mirror_lib.cluster.quota_watch import QuotaWatch
from mirror_lib.cluster.round_trip import round_trip as measured_round_trip
from mirror_lib.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ClusterError,
    MirrorError,
    RetriesExhaustedError,
    Where,
)
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.acls import AclBinding, AclResource
from mirror_lib.topology.names import TopicPartition

__all__ = [
    "FetchRequestPartition",
    "FetchedPartition",
    "ProducedPartition",
    "ProducerIdentity",
    "RawClient",
    "open_clients",
]

hide_logins()

#: As Kafka's own producers.
_TRANSACTION_TIMEOUT_MS = 60_000

_COORDINATOR_RETRIES = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer id with its epoch: what a broker checks to refuse an older writer (KIP-98)."""

    producer_id: int
    epoch: int


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


class _Handshake(AIOKafkaConnection):  # type: ignore[misc]
    """A connection as aiokafka makes it: TLS, versions and SASL. What follows may go on without aiokafka."""

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The request versions that the broker speaks, by API key."""
        found: dict[int, tuple[int, int]] = self._versions
        return found

    def detach(self) -> asyncio.Transport:
        """Give the transport away: aiokafka neither reads from it any more nor misses it."""
        self._read_task.cancel()
        self._reader = None
        transport: asyncio.Transport = self._writer.transport
        return transport


class _DataLink(NamedTuple):
    """A connection for data, and the handshake that it came from, whose end would close the transport."""

    connection: DataConnection
    handshake: _Handshake
    #: Seconds; measured for the first connection to a broker only.
    round_trip: float

    @property
    def produces(self) -> bool:
        """Whether the broker takes our Produce requests."""
        low, high = self.handshake.versions.get(PRODUCE, (0, -1))
        return low <= PRODUCE_VERSION <= high


class RawClient:
    """One cluster, seen as leaders and raw batches. Use as an async context manager inside one event loop.

    Every failure to reach a broker is raised as `BrokerUnreachableError`; per-partition error codes are returned as
    they are, since only the caller knows which of them may be retried.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: Any = None
        self._leaders: dict[TopicPartition, int] = {}
        self._partition_counts: dict[str, int] = {}
        self._coordinators: dict[str, int] = {}
        self._links: dict[tuple[int, int], _DataLink] = {}
        self._connecting: dict[tuple[int, int], asyncio.Lock] = {}
        self._frames = frames_of_this_thread()
        self._quotas = QuotaWatch(connection.cluster, connection.client_id)

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
        for link in self._links.values():
            link.connection.close()
        await self._client.close()

    async def _why_unreachable(self, options: dict[str, Any], error: Exception) -> ClusterError:
        """`bootstrap` keeps the reason to its log, so ask one broker again to tell refusal from silence."""
        host, port, _ = self._client.hosts[0]
        try:
            (await self._connect(host, port, options)).close()
        except AuthenticationError as refusal:
            return refusal
        except (TimeoutError, OSError, aiokafka_errors.KafkaError) as silence:
            error = silence
        return self._unreachable(error, f"no broker of {', '.join(self._connection.bootstrap_servers)} answered")

    async def _connect(self, host: str, port: int, options: dict[str, Any]) -> _Handshake:
        """An aiokafka connection after its handshake."""
        arguments = {name: value for name, value in options.items() if name != "bootstrap_servers"}
        try:
            handshake = _Handshake(host, port, **arguments)
            await handshake.connect()
        except (
            aiokafka_errors.AuthenticationFailedError,
            aiokafka_errors.SaslAuthenticationFailed,
            aiokafka_errors.UnsupportedSaslMechanismError,
            aiokafka_errors.IllegalSaslStateError,
        ) as refusal:
            if isinstance(refusal.__cause__, MirrorError):
                # It was not the cluster: a token or a ticket could not be had.
                raise refusal.__cause__ from None
            raise AuthenticationError(
                f"the cluster refused our credentials: {refusal}.",
                where=Where(cluster=self.cluster),
                action="Check sasl.mechanism, sasl.jaas.config and the user on the cluster.",
            ) from refusal
        except ssl.SSLCertVerificationError as distrust:
            raise AuthenticationError(
                f"the certificate of {host}:{port} is not trusted: {distrust.verify_message.rstrip('.')}.",
                where=Where(cluster=self.cluster),
                action="Check ssl.truststore.* and ssl.endpoint.identification.algorithm.",
            ) from distrust
        except ssl.SSLError as refusal:
            if "_ALERT_" not in (refusal.reason or ""):
                # A connection that was cut, or no TLS at all.
                raise
            raise AuthenticationError(
                f"{host}:{port} ended the TLS handshake: {refusal.reason}.",
                where=Where(cluster=self.cluster),
                action="Check ssl.keystore.*, ssl.enabled.protocols and ssl.cipher.suites.",
            ) from refusal
        return handshake

    async def _link(self, node: int, lane: int = 0) -> _DataLink:
        """One of the connections for data to a broker, made when there is none."""
        async with self._connecting.setdefault((node, lane), asyncio.Lock()):
            link = self._links.get((node, lane))
            if link is not None and link.connection.open:
                return link
            broker = self._client.cluster.broker_metadata(node)
            if broker is None:
                raise ConnectionRefusedError("it is not known where it listens")
            options = self._connection.aiokafka()
            handshake = await self._connect(broker.host, broker.port, options)
            timeout = options["request_timeout_ms"] / 1000
            connection = DataConnection(
                handshake.detach(),
                client_id=options["client_id"],
                timeout=timeout,
                frames=self._frames,
                told_as=partial(self._silent, node),
            )
            try:
                round_trip = 0.0 if lane else await measured_round_trip(connection)
            except BaseException:
                # Nobody else knows of it.
                connection.close()
                raise
            link = self._links[node, lane] = _DataLink(connection, handshake, round_trip)
            return link

    async def _ask(
        self,
        node: int,
        api_key: int,
        version: int,
        body: Sequence[Buffer],
        *,
        lane: int = 0,
        over: object | None = None,
    ) -> memoryview:
        """Send a request that we encoded, over a certain connection if one is given, and return the answer's frame."""
        try:
            link = self._links.get((node, lane))
            if link is None or not link.connection.open:
                link = await self._link(node, lane)
            if over is not None and link.connection is not over:
                raise ConnectionResetError("the connection that the request was for has ended")
            low, high = link.handshake.versions.get(api_key, (0, -1))
            if not low <= version <= high:
                raise self._too_old(node, f"it speaks versions {low} to {high} of request {api_key}, not {version}")
            return await link.connection.request(api_key, version, body)
        except (TimeoutError, aiokafka_errors.KafkaError, OSError) as error:
            raise self._silent(node, error) from error

    async def request(self, node: int, api_key: int, version: int, body: Sequence[Buffer]) -> memoryview:
        """Send a request that another module has encoded, and return its answer without the response header v0."""
        return await self._ask(node, api_key, version, body)

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        """Whether a broker knows this version of a request."""
        return await self._speaks(node, api_key, version)

    async def _speaks(self, node: int, api_key: int, version: int) -> bool:
        try:
            low, high = (await self._link(node)).handshake.versions.get(api_key, (0, -1))
        except (TimeoutError, aiokafka_errors.KafkaError, OSError) as error:
            raise self._unreachable(error, f"broker {node} did not answer") from error
        return low <= version <= high

    def _too_old(self, node: int, why: object) -> ClusterError:
        return ClusterError(
            f"broker {node} is too old: {why}.",
            where=Where(cluster=self.cluster),
            action="Kafka 2.4 is the oldest broker that can be copied from or to.",
        )

    def _silent(self, node: int, error: BaseException) -> BrokerUnreachableError:
        return self._unreachable(error, f"broker {node} did not answer")

    def _unreachable(self, error: BaseException, what: str) -> BrokerUnreachableError:
        return BrokerUnreachableError(
            f"{what}: {str(error) or type(error).__name__}.",
            where=Where(cluster=self.cluster),
            action="Check that the brokers run and that bootstrap.servers and security.protocol are right.",
        )

    async def _send(self, node: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        try:
            return await self._client.send(node, request, group=group)
        except aiokafka_errors.IncompatibleBrokerVersion as error:
            raise self._too_old(node, error) from error
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
            else:
                self._partition_counts[name] = len(partitions)
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

    def partition_count(self, topic: str) -> int | None:
        """How many partitions a topic had at the last refresh, those without a leader too; None when unknown."""
        return self._partition_counts.get(topic)

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
        lane: int = 0,
        rack: str = "",
    ) -> list[FetchedPartition]:
        """Read raw batches, without a session; Kafka 2.7 and newer check the last epoch.

        A broker whose quota is used up answers with nothing but a time to wait; then it is asked again after that.

        Args:
            rack: told to a leader, so that it may name a replica there instead (KIP-392).
        """
        checking = await self._speaks(node, FETCH, EPOCH_CHECKING_VERSION)
        version = EPOCH_CHECKING_VERSION if checking else PLAIN_VERSION
        body = encode_fetch(
            partitions,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            read_committed=read_committed,
            version=version,
            rack=rack,
        )
        while True:
            answer = await self._ask(node, FETCH, version, body, lane=lane)
            throttled_ms = fetch_throttle_ms(answer, version)
            self._quotas.note(node, throttled_ms)
            found = parse_fetch(answer, version)
            if found or not throttled_ms:
                return found
            await asyncio.sleep(throttled_ms / 1000)

    async def connect(self, node: int) -> None:
        """Connect to a broker for data, unless that has been done."""
        try:
            await self._link(node)
        except (TimeoutError, aiokafka_errors.KafkaError, OSError) as error:
            raise self._unreachable(error, f"broker {node} did not answer") from error

    def round_trip(self, node: int) -> float | None:
        """Seconds that the broker took to answer when it was connected, None before that: how far away it is."""
        link = self._links.get((node, 0))
        return link.round_trip if link is not None else None

    def connection(self, node: int, lane: int = 0) -> object | None:
        """What requests to a broker go over now, None when it must be connected first. To be compared only."""
        link = self._links.get((node, lane))
        return link.connection if link is not None and link.connection.open else None

    def produce(
        self,
        node: int,
        batches: Sequence[tuple[str, int, Buffer]],
        *,
        timeout_ms: int,
        lane: int = 0,
        connection: object | None = None,
        transactional_id: str | None = None,
    ) -> Awaitable[list[ProducedPartition]]:
        """Append one ready-made batch to each of several partitions with acks=all (Produce v7).

        Args:
            batches: topic, partition, complete magic-2 batch; at most one batch for a partition.
            lane: which of the connections to the broker.
            connection: send over this connection or not at all.
            transactional_id: of the producer in whose open transaction all the batches are.
        """
        body = encode_produce(batches, timeout_ms=timeout_ms, transactional_id=transactional_id)
        link = self._links.get((node, lane))
        if link is not None and link.connection is connection and link.produces and link.connection.open:
            # Without a coroutine, as thousands of these are sent in a second.
            return link.connection.request_read(PRODUCE, PRODUCE_VERSION, body, partial(self._produced, node))
        return self._produce(node, body, lane, connection)

    async def _produce(
        self, node: int, body: Sequence[Buffer], lane: int, connection: object | None
    ) -> list[ProducedPartition]:
        return self._produced(node, await self._ask(node, PRODUCE, PRODUCE_VERSION, body, lane=lane, over=connection))

    def _produced(self, node: int, answer: memoryview) -> list[ProducedPartition]:
        self._quotas.note(node, produce_throttle_ms(answer))
        return parse_produce(answer)

    async def local_log_start(self, node: int, partition: TopicPartition) -> int | None:
        """The first offset that the leader has on its own disks; what is older lies in remote storage (KIP-405).

        None when the broker is older than remote storage.
        """
        if not await self._speaks(node, LIST_OFFSETS, LIST_LOCAL_OFFSETS_VERSION):
            return None
        body = encode_local_log_start(*partition)
        answer = await self._ask(node, LIST_OFFSETS, LIST_LOCAL_OFFSETS_VERSION, body)
        return self._listed(partition, *parse_local_log_start(answer))

    async def log_ends(self, node: int, partition: TopicPartition) -> tuple[int, int]:
        """The high watermark and the end of the leader's log, which may have records that are not replicated yet.

        Raises:
            TransientError: the broker does not lead the partition, or did not all the time.
            MirrorError: it cannot be asked.
        """
        ends = []
        # Followers tell the end of their logs too, and may be behind. The high watermark is told by leaders only, and
        # each begins an epoch of its own: so this one led when it told the end.
        for replicated in (True, False, True):
            body = encode_list_end(*partition, replicated=replicated)
            told = parse_list_end(await self._ask(node, LIST_OFFSETS, LIST_OFFSETS_VERSION, body))
            self._listed(partition, told.error_code, told.offset)
            ends.append(told)
        before, end, after = ends
        if before.leader_epoch != after.leader_epoch:
            where = Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)
            raise error_for_code(ErrorCode.NOT_LEADER_OR_FOLLOWER, where=where, doing="ask for the log's end")
        return after.offset, end.offset

    def _listed(self, partition: TopicPartition, code: int, offset: int) -> int:
        if code:
            where = Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)
            needs = Grant.on_topic(Operation.DESCRIBE, partition.topic)
            raise error_for_code(code, where=where, doing="ask for an offset", needs=needs)
        return offset

    async def init_producer_id(
        self, transactional_id: str, *, deadline: float, transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS
    ) -> ProducerIdentity:
        """Take over a transactional id: its producer id with a raised epoch (KIP-98).

        Args:
            deadline: `time.monotonic()` value after which a busy coordinator is given up.
            transaction_timeout_ms: how long a transaction of it may last before the coordinator aborts it.
        """
        request = InitProducerIdRequest(transactional_id, transaction_timeout_ms)
        response = await self._ask_coordinator(transactional_id, request, deadline, "take over transactional id")
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def new_producer_id(self) -> ProducerIdentity:
        """A producer id of no transactional id: nobody is fenced by it (KIP-98)."""
        response = await self._ask_any_broker(InitProducerIdRequest(None, _TRANSACTION_TIMEOUT_MS))
        code = _coordinator_error(response)
        if code != ErrorCode.NONE:
            # Since Kafka 2.8 whoever may write to any topic may do so (KIP-679).
            needs = Grant.on_cluster(Operation.IDEMPOTENT_WRITE)
            raise error_for_code(code, where=Where(cluster=self.cluster), doing="get a producer id", needs=needs)
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def fence(self, transactional_id: str, *targets: TopicPartition, deadline: float) -> ProducerIdentity:
        """Make every older epoch of this id refused on the partitions, and everything it appended visible.

        An empty transaction is aborted: when the final InitProducerId returns, its marker is on the partitions and
        replicated, so older epochs get INVALID_PRODUCER_EPOCH and the high watermark covers what they wrote. Uses one
        offset of each.
        """
        identity = await self.init_producer_id(transactional_id, deadline=deadline)
        await self.add_to_transaction(transactional_id, identity, targets, deadline=deadline)
        await self.end_transaction(transactional_id, identity, commit=False, deadline=deadline)
        return await self.init_producer_id(transactional_id, deadline=deadline)

    async def add_to_transaction(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        *,
        deadline: float,
    ) -> None:
        """Say that the producer's transaction writes to these partitions, before it does; begins one if there is none.

        Raises:
            FencedError: the producer has been fenced, or its transaction took too long.
            MirrorError: the coordinator refused, or did not answer in time.
        """
        topics = [(topic, [each[1] for each in wanted]) for topic, wanted in by_topic(list(partitions)).items()]
        request = AddPartitionsToTxnRequest(transactional_id, identity.producer_id, identity.epoch, topics)
        doing, topic = "add partitions to the transaction of", ", ".join(name for name, _ in topics)
        await self._ask_coordinator(transactional_id, request, deadline, doing, topic=topic)

    async def end_transaction(
        self, transactional_id: str, identity: ProducerIdentity, *, commit: bool, deadline: float
    ) -> None:
        """Decide how the producer's transaction ends. Its markers come a little later than the answer.

        Raises:
            FencedError: the producer has been fenced, or its transaction took too long and is aborted.
            MirrorError: the coordinator refused, or did not answer in time: how it ended is not known.
        """
        request = EndTxnRequest(transactional_id, identity.producer_id, identity.epoch, commit)
        doing = f"{'commit' if commit else 'abort'} the transaction of"
        await self._ask_coordinator(transactional_id, request, deadline, doing)

    async def _ask_coordinator(
        self, transactional_id: str, request: Any, deadline: float, doing: str, *, topic: str = ""
    ) -> Any:
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
                needs = _transactional(code, transactional_id, topic)
                raise error_for_code(code, where=where, doing=f"{doing} {transactional_id}", needs=needs)
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
                    error.errno,
                    where=Where(cluster=self.cluster),
                    doing=f"use transactional id {transactional_id}",
                    needs=Grant.on_transactional_id(Operation.WRITE, transactional_id),
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
        for node in self.brokers():
            answer = await self._ask(node, DESCRIBE_LOG_DIRS, LOG_DIRS_VERSION, encode_log_dirs())
            for topic, partition, size in parse_log_dirs(answer):
                if topic in names:
                    key = TopicPartition(topic, partition)
                    sizes[key] = max(size, sizes.get(key, 0))
        return sizes

    async def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | MirrorError]:
        """Where leader epochs end in the logs of their leaders now (OffsetForLeaderEpoch, KIP-320).

        -1 says that the leader does not know the epoch; an error, that the partition's leader gave no answer.
        Partitions whose leader is too old for the question are missing.
        """
        found: dict[TopicPartition, int | MirrorError] = {}
        again = dict(epochs)
        # The first answer may come from a broker that has just ceased to lead.
        for _ in range(2):
            if not again:
                break
            failed = await self.refresh_leaders(partition.topic for partition in again)
            by_leader: dict[int, list[tuple[str, int, int]]] = {}
            for partition, epoch in again.items():
                node = self.leader(partition)
                if node is None:
                    code = failed.get(partition.topic) or ErrorCode.LEADER_NOT_AVAILABLE
                    found[partition] = self._no_epoch_end(partition, code)
                else:
                    by_leader.setdefault(node, []).append((*partition, epoch))
            asked = (self._epoch_ends_of(node, wanted) for node, wanted in by_leader.items())
            for answers in await asyncio.gather(*asked):
                found |= answers
            again = {
                partition: epoch
                for partition, epoch in again.items()
                if isinstance(answer := found.get(partition), MirrorError) and answer.retriable
            }
        return found

    async def _epoch_ends_of(
        self, node: int, wanted: Sequence[tuple[str, int, int]]
    ) -> dict[TopicPartition, int | MirrorError]:
        try:
            if not await self._speaks(node, OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION):
                return {}
            answer = await self._ask(node, OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION, encode_epoch_ends(wanted))
        except ClusterError as error:
            return {TopicPartition(topic, partition): error for topic, partition, _ in wanted}
        ends: dict[TopicPartition, int | MirrorError] = {}
        for each in parse_epoch_ends(answer):
            partition = TopicPartition(each.topic, each.partition)
            failed = each.error_code != ErrorCode.NONE
            ends[partition] = self._no_epoch_end(partition, each.error_code) if failed else each.end
        return ends

    def _no_epoch_end(self, partition: TopicPartition, code: int) -> MirrorError:
        where = Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)
        needs = Grant.on_topic(Operation.DESCRIBE, partition.topic)
        return error_for_code(code, where=where, doing="find the end of a leader epoch", needs=needs)

    async def acls(self, resource: AclResource) -> frozenset[AclBinding]:
        """All ACLs on resources of a type (DescribeAcls v1), from any broker: each knows them all.

        Raises:
            SecurityDisabledError: the cluster has no authorizer.
            AuthorizationError: it wants DESCRIBE on the cluster.
        """
        failure = self._unreachable(LookupError("none is known"), "the cluster has no brokers")
        for node in self.brokers():
            try:
                frame = await self._ask(node, DESCRIBE_ACLS, DESCRIBE_ACLS_VERSION, encode_describe_acls(resource))
            except BrokerUnreachableError as error:
                failure = error
                continue
            answer = parse_describe_acls(frame)
            if answer.error_code != ErrorCode.NONE:
                where, detail = Where(cluster=self.cluster), answer.error_message
                raise error_for_code(
                    answer.error_code,
                    where=where,
                    doing="list the ACLs",
                    detail=detail,
                    needs=Grant.on_cluster(Operation.DESCRIBE),
                )
            return answer.acls
        raise failure


def _transactional(code: int, transactional_id: str, topic: str) -> Grant:
    """What a request of a transaction's owner needs: the id and, where it speaks of one, the topic."""
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return Grant.on_topic(Operation.WRITE, topic)
    return Grant.on_transactional_id(Operation.WRITE, transactional_id)


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
