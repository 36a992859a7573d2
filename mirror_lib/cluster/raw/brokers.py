"""The brokers of one cluster, and the connections to them.

aiokafka's low-level client finds the brokers and sends the small requests that it knows; requests with data, and others
that it lacks, are encoded by this project and use separate connections (`raw.connection`). aiokafka's client is
semi-internal: contract tests (`tests/integration/cluster/test_raw_client.py`) check every request with a real broker.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import aiokafka.errors as aiokafka_errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.metadata import MetadataRequest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.api_names import api_name, how_without
from mirror_lib.cluster.protocol.kafka_errors import UnsupportedRequestError
from mirror_lib.cluster.protocol.produce import API_VERSIONS, API_VERSIONS_VERSION
from mirror_lib.cluster.raw.connection import Buffer, DataConnection, frames_of_this_thread
from mirror_lib.cluster.raw.handshake import SILENCE, Handshake, hide_logins, shake_hands
from mirror_lib.errors import AuthenticationError, BrokerUnreachableError, ClusterError, MirrorError, Where

_FIND_COORDINATOR = 10
_SURELY_NEAR_SECONDS = 0.005
#: A busy broker, or a busy local machine, may be slow several times in a row, but mostly adds less than this. If two
#: responses take longer, the broker is far away.
_DOUBTFUL_SECONDS = 0.05
_PROBES, _PROBES_IN_DOUBT = 2, 6


def is_settled(probes: Sequence[float]) -> bool:
    """True if the shortest of the probes, in seconds, is a reliable round-trip time of a broker."""
    shortest = min(probes)
    if shortest < _SURELY_NEAR_SECONDS:
        return True
    return len(probes) >= (_PROBES if shortest >= _DOUBTFUL_SECONDS else _PROBES_IN_DOUBT)


async def measure_round_trip(connection: DataConnection) -> float:
    """Round-trip time in seconds of a connection without other requests."""
    probes: list[float] = []
    while not probes or not is_settled(probes):
        began = time.monotonic()
        await connection.request(API_VERSIONS, API_VERSIONS_VERSION, ())
        probes.append(time.monotonic() - began)
    return min(probes)


hide_logins()

_Answer = TypeVar("_Answer")


class _Client(AIOKafkaClient):  # type: ignore[misc]
    """aiokafka's client, which discovers only brokers: topics are requested by name, and never created by that.

    If a broker rejects the login, it raises `AuthenticationError`, where aiokafka would report the broker as not ready.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(metadata_max_age_ms=3_600_000, **connection.aiokafka())
        self._connection = connection

    async def _get_conn(self, node_id: int, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, **_: Any) -> Any:
        if (found := self._open_connection(node_id, group)) is not None:
            return found
        async with self._get_conn_lock:
            if (found := self._open_connection(node_id, group)) is not None:
                return found
            try:
                made = await self.shake_hands_with(
                    node_id, on_close=self._on_connection_closed, max_idle_ms=self._connections_max_idle_ms
                )
            except SILENCE:
                # Its address may have changed.
                self.force_metadata_update()
                return None
            self._conns[node_id, group] = made
            return made

    async def shake_hands_with(self, node_id: int, **options: Any) -> Handshake:
        """As `shake_hands`, with a broker of the cluster."""
        broker = self.cluster.broker_metadata(node_id)
        if broker is None:
            raise ConnectionRefusedError("its address is unknown")
        return await shake_hands(self._connection, broker.host, broker.port, **options)

    def _open_connection(self, node_id: int, group: ConnectionGroup) -> Any:
        found = self._conns.get((node_id, group))
        if found is None or not found.connected():
            return None
        if found.is_nearly_over and not found.is_waiting:
            # The broker would close it soon, after one of the next requests.
            found.close()
            return None
        return found

    async def _metadata_update(self, cluster_metadata: ClusterMetadata, topics: Any) -> bool:
        del topics
        for broker in list(self.cluster.brokers()):
            try:
                connection = await self._get_conn(broker.nodeId)
                if connection is None:
                    continue
                metadata = await connection.send(MetadataRequest([], allow_auto_topic_creation=False))
            except (*SILENCE, MirrorError):
                continue
            if metadata.brokers:
                cluster_metadata.update_metadata(metadata)
                return True
        cluster_metadata.failed_update(None)
        return False


class DataLink(NamedTuple):
    """A data connection, and the handshake that it came from, which must stay open: it would close the transport."""

    connection: DataConnection
    handshake: Handshake
    #: Round-trip time in seconds; measured only for the first connection to a broker.
    round_trip: float

    def supported_versions(self, api_key: int) -> tuple[int, int]:
        """The lowest and highest version of a request that the broker supports; lowest above highest for none."""
        return self.handshake.versions.get(api_key, (0, -1))

    def offers(self, api_key: int) -> bool:
        """True if the broker supports any version of a request."""
        low, high = self.supported_versions(api_key)
        return low <= high

    def speaks(self, api_key: int, version: int) -> bool:
        """True if the broker supports this version of a request."""
        low, high = self.supported_versions(api_key)
        return low <= version <= high


class BrokerConnections:
    """The brokers of one cluster. Use as an async context manager inside one event loop.

    An unreachable broker raises `BrokerUnreachableError`, and a rejected login `AuthenticationError`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: Any = None
        self._links: dict[tuple[int, int], DataLink] = {}
        self._connecting: dict[tuple[int, int], asyncio.Lock] = {}
        #: Number of callers that wait for each connection, or create it: they are served in order.
        self._awaited: dict[tuple[int, int], int] = {}
        self._frames = frames_of_this_thread()

    @property
    def cluster(self) -> str:
        """The alias of the cluster, for messages."""
        return self._connection.cluster

    async def __aenter__(self) -> Self:
        self._client = _Client(self._connection)
        try:
            await self._client.bootstrap()
        except aiokafka_errors.KafkaError as error:
            await self._client.close()
            raise await self._why_unreachable(error) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        for link in self._links.values():
            link.connection.close()
        await self._client.close()

    async def _why_unreachable(self, error: BaseException) -> MirrorError:
        """Connect again, since `bootstrap` only logs its errors; return a rejection rather than a timeout."""
        tries = (self._refusal(host, port) for host, port, _ in self._client.hosts)
        reasons = [reason for reason in await asyncio.gather(*tries) if reason is not None]
        refusal = next((reason for reason in reasons if isinstance(reason, MirrorError)), None)
        silence = reasons[0] if reasons else error
        return refusal or self.unreachable(silence, f"no response from {', '.join(self._connection.bootstrap_servers)}")

    async def _refusal(self, host: str, port: int) -> BaseException | None:
        """Why a broker cannot be connected to; None if it can, by now."""
        try:
            (await shake_hands(self._connection, host, port)).close()
        except (*SILENCE, MirrorError) as why:
            return why
        return None

    def brokers(self) -> list[int]:
        """The ids of all brokers of the cluster."""
        return [broker.nodeId for broker in self._client.cluster.brokers()]

    def learn(self, metadata: Any) -> None:
        """Update the brokers from a response to a MetadataRequest."""
        self._client.cluster.update_metadata(metadata)

    async def link(self, node: int, slot: int = 0) -> DataLink:
        """A data connection to a broker, created if there is none.

        Raises:
            AuthenticationError: the broker rejects the login.
            TimeoutError, OSError, aiokafka.errors.KafkaError: it does not respond (`SILENCE`).
        """
        place = node, slot
        self._awaited[place] = self._awaited.get(place, 0) + 1
        try:
            return await self._linked_in_turn(node, slot)
        finally:
            self._awaited[place] -= 1

    async def _linked_in_turn(self, node: int, slot: int) -> DataLink:
        async with self._connecting.setdefault((node, slot), asyncio.Lock()):
            link = self.open_link(node, slot)
            if link is not None:
                return link
            handshake = await self._client.shake_hands_with(node)
            connection = DataConnection(
                handshake.detach(),
                client_id=self._connection.client_id,
                timeout=self._connection.request_timeout_ms / 1000,
                frames=self._frames,
                convert_error=partial(self.silent, node),
                session=handshake.session,
            )
            try:
                round_trip = 0.0 if slot else await measure_round_trip(connection)
            except BaseException:
                # No other code has a reference to it.
                connection.close()
                raise
            link = self._links[node, slot] = DataLink(connection, handshake, round_trip)
            return link

    def open_link(self, node: int, slot: int = 0) -> DataLink | None:
        """As `link`, without creating one."""
        link = self._links.get((node, slot))
        return link if link is not None and link.connection.open else None

    async def connect(self, node: int) -> None:
        """Open a data connection to a broker, unless there is one."""
        try:
            await self.link(node)
        except SILENCE as error:
            raise self.silent(node, error) from error

    def round_trip(self, node: int) -> float | None:
        """Round-trip time in seconds to the broker when it was connected; None before that."""
        link = self._links.get((node, 0))
        return link.round_trip if link is not None else None

    def connection(self, node: int, slot: int = 0) -> object | None:
        """The current connection for requests to a broker; None if there is none. Use it only for comparisons."""
        link = self.open_link(node, slot)
        return link.connection if link is not None else None

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        """True if a broker supports this version of a request."""
        try:
            return (await self.link(node)).speaks(api_key, version)
        except SILENCE as error:
            raise self.silent(node, error) from error

    async def ask(
        self,
        node: int,
        api_key: int,
        version: int,
        body: Sequence[Buffer],
        *,
        slot: int = 0,
        over: object | None = None,
        fetch_bytes: int = 0,
    ) -> memoryview:
        """Send an encoded request, and return its response without the response header v0.

        Args:
            over: the connection to use, if only this one is allowed (see `connection`).
            fetch_bytes: of a fetch, the bytes that it requests.
        """
        try:
            link = None if self._awaited.get((node, slot)) else self.open_link(node, slot)
            if link is None:
                link = await self.link(node, slot)
            if over is not None and link.connection is not over:
                raise ConnectionResetError("the connection that the request was for has ended")
            if not link.speaks(api_key, version):
                if not link.offers(api_key):
                    raise self._not_offered(node, api_key)
                low, high = link.supported_versions(api_key)
                raise self._too_old(node, f"it supports versions {low} to {high} of {api_name(api_key)}, not {version}")
            return await link.connection.request(api_key, version, body, fetch_bytes=fetch_bytes)
        except SILENCE as error:
            raise self.silent(node, error) from error

    async def send(self, node: int, request: Any, *, coordination: bool = False) -> Any:
        """Send a request that aiokafka encodes, over a separate connection.

        Args:
            coordination: use the connection for coordinators, which may delay requests for long.
        """
        group = ConnectionGroup.COORDINATION if coordination else ConnectionGroup.DEFAULT
        try:
            return await self._client.send(node, request, group=group)
        except aiokafka_errors.IncompatibleBrokerVersion as error:
            if (await self.link(node)).offers(request.API_KEY):
                raise self._too_old(node, error) from error
            raise self._not_offered(node, request.API_KEY) from error
        except NotImplementedError as error:
            low, high = (await self.link(node)).supported_versions(request.API_KEY)
            what = f"it supports versions {low} to {high} of {api_name(request.API_KEY)}, and aiokafka none of them"
            raise self._unsupported(node, what) from error
        except SILENCE as error:
            raise self.silent(node, error) from error

    async def from_any(self, ask: Callable[[int], Awaitable[_Answer]]) -> _Answer:
        """Send to one broker after the other until one responds.

        Args:
            ask: sends the request to the broker with an id.

        Raises:
            AuthenticationError: none responded, and one rejected the login.
            BrokerUnreachableError: none responded.
        """
        failure: ClusterError = self.unreachable(LookupError("no broker is known"), "the cluster has no brokers")
        brokers = self.brokers()
        random.shuffle(brokers)
        for node in brokers:
            try:
                return await ask(node)
            except AuthenticationError as error:
                failure = error
            except BrokerUnreachableError as error:
                failure = failure if isinstance(failure, AuthenticationError) else error
        raise failure

    async def transaction_coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates the transactions of an id.

        Raises:
            aiokafka.errors.TransactionalIdAuthorizationFailed: permission is missing.
            BrokerUnreachableError: no broker named it.
        """
        try:
            node: int = await self._client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
        except aiokafka_errors.TransactionalIdAuthorizationFailed:
            raise
        except aiokafka_errors.IncompatibleBrokerVersion as error:
            # The lookup asks any of the brokers.
            raise self._not_offered(self.brokers()[0], _FIND_COORDINATOR) from error
        except aiokafka_errors.CoordinatorNotAvailableError as error:
            # Brokers are up and respond.
            raise BrokerUnreachableError(
                f"the transaction coordinator cannot be found: {error}.",
                where=Where(cluster=self.cluster),
                action="Check topic __transaction_state of the cluster: brokers create it with "
                "transaction.state.log.replication.factor replicas (default 3), of which "
                "transaction.state.log.min.isr must be in sync. Lower these broker settings or add brokers; "
                "with mirror.fencing=none the flow needs no transactional ids.",
            ) from error
        except SILENCE as error:
            raise self.unreachable(error, "the transaction coordinator cannot be found") from error
        return node

    def silent(self, node: int, error: BaseException) -> BrokerUnreachableError:
        """The project's error for a broker that does not respond."""
        unreachable = self.unreachable(error, f"no response from broker {node}")
        # The cause matters to a producer: the connection was lost, or no response came in time.
        unreachable.__cause__ = error
        return unreachable

    def unreachable(self, error: BaseException, what: str) -> BrokerUnreachableError:
        """The project's error for requests that get no response."""
        return BrokerUnreachableError(
            f"{what}: {str(error) or type(error).__name__}.",
            where=Where(cluster=self.cluster),
            action="Check that the brokers run, and bootstrap.servers and security.protocol.",
        )

    def _not_offered(self, node: int, api_key: int) -> UnsupportedRequestError:
        return UnsupportedRequestError(
            f"broker {node} does not support {api_name(api_key)}: it is too old, or the service does not offer it.",
            where=Where(cluster=self.cluster),
            action=f"{how_without(api_key)} See docs/clouds.md for the limits of managed services.".lstrip(),
        )

    def _unsupported(self, node: int, what: str) -> ClusterError:
        return UnsupportedRequestError(
            f"broker {node} is too new: {what}.",
            where=Where(cluster=self.cluster),
            action="Use a version of batch-mirror for this version of Kafka (docs/versions.md).",
        )

    def _too_old(self, node: int, why: object) -> ClusterError:
        return ClusterError(
            f"broker {node} is too old: {why}.",
            where=Where(cluster=self.cluster),
            action="Kafka 2.4 is the oldest supported broker.",
        )
