"""Requests about records of one cluster: leaders and raw record batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from aiokafka.protocol.metadata import MetadataRequest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.fetch import (
    EPOCH_CHECKING_VERSION,
    FETCH,
    PLAIN_VERSION,
    TOPIC_ID_VERSION,
    FetchedPartition,
    FetchRequestPartition,
    encode_fetch,
    fetch_throttle_ms,
    names_by_id,
    parse_fetch,
)
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.protocol.produce import (
    DESCRIBE_LOG_DIRS,
    EPOCH_VERSION,
    LIST_LOCAL_OFFSETS_VERSION,
    LIST_OFFSETS,
    LIST_OFFSETS_VERSION,
    LOG_DIRS_VERSION,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    PRODUCE_BY_ID_VERSION,
    PRODUCE_VERSION,
    ProducedPartition,
    encode_epoch_ends,
    encode_list_end,
    encode_list_ends,
    encode_list_start,
    encode_local_log_start,
    encode_log_dirs,
    encode_produce,
    encode_produce_by_id,
    parse_epoch_ends,
    parse_list_end,
    parse_list_ends,
    parse_local_log_start,
    parse_log_dirs,
    parse_produce,
    parse_produce_by_id,
    produce_throttle_ms,
)
from mirror_lib.cluster.protocol.topic_ids import (
    METADATA,
    METADATA_VERSION,
    NamedTopic,
    encode_topic_ids,
    parse_topic_ids,
)
from mirror_lib.cluster.raw.brokers import BrokerConnections
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.cluster.raw.producer_ids import Producers
from mirror_lib.cluster.raw.quota_watch import QuotaWatch
from mirror_lib.errors import (
    ClusterError,
    MirrorError,
    Where,
)
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

if TYPE_CHECKING:
    from mirror_lib.topology.acls import AclBinding, AclResource

__all__ = [
    "FetchRequestPartition",
    "FetchedPartition",
    "ProducedPartition",
    "RawClient",
    "open_clients",
]


class RawClient(BrokerConnections):
    """Requests to the partition leaders of one cluster. Use as an async context manager inside one event loop.

    Error codes of partitions are returned unchanged, since only the caller knows which of them may be retried.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        #: Requests about producers and transactions.
        self.producers = Producers(self)
        self._leaders: dict[TopicPartition, int] = {}
        self._partition_counts: dict[str, int] = {}
        self._undescribed: dict[str, int] = {}
        self._quotas = QuotaWatch(connection.cluster, connection.client_id)

    async def refresh_leaders(self, topics: Iterable[str]) -> dict[str, int]:
        """Request the leaders of some topics; return the topics that could not be described, with their error codes."""
        request = MetadataRequest(sorted(set(topics)), allow_auto_topic_creation=False)
        response = await self.from_any(lambda node: self.send(node, request))
        self.learn(response)
        failed: dict[str, int] = {}
        for topic in response.topics:
            error_code, name, partitions = topic[0], topic[1], topic[-1]
            if error_code:
                failed[name] = self._undescribed[name] = error_code
            else:
                self._undescribed.pop(name, None)
                self._partition_counts[name] = len(partitions)
            for partition in partitions:
                key, leader = TopicPartition(name, partition[1]), partition[2]
                if leader >= 0:
                    self._leaders[key] = leader
                else:
                    self._leaders.pop(key, None)
        return failed

    def leader(self, partition: TopicPartition) -> int | None:
        """The partition's leader at the last refresh; None if it is unknown or there is none."""
        return self._leaders.get(partition)

    def why_no_leader(self, partition: TopicPartition) -> int:
        """The error code of a partition without a known leader, from the last refresh of its topic."""
        return self._undescribed.get(partition.topic, ErrorCode.LEADER_NOT_AVAILABLE)

    async def topic_ids(self, topics: Iterable[str], *, node: int | None = None) -> dict[str, NamedTopic]:
        """The current ids of topics, and the error codes of topics that cannot be described.

        Empty if the cluster is older than topic ids (Kafka 2.8).

        Args:
            node: the broker to use; by default any.
        """
        body = encode_topic_ids(sorted(set(topics)))

        async def ask(broker: int) -> dict[str, NamedTopic]:
            if not await self.speaks(broker, METADATA, METADATA_VERSION):
                return {}
            return parse_topic_ids(await self.ask(broker, METADATA, METADATA_VERSION, body))

        return await (self.from_any(ask) if node is None else ask(node))

    def partition_count(self, topic: str) -> int | None:
        """The number of partitions of a topic at the last refresh, even those without a leader; None if not known."""
        return self._partition_counts.get(topic)

    async def fetch(
        self,
        node: int,
        partitions: Sequence[FetchRequestPartition],
        *,
        max_bytes: int,
        max_wait_ms: int,
        read_committed: bool,
        min_bytes: int = 1,
        slot: int = 0,
        rack: str = "",
    ) -> list[FetchedPartition]:
        """Read raw batches, without a session; Kafka 2.7 and newer check the last epoch, 3.1 and newer the topic's id.

        If a quota is exceeded, the broker responds only with a throttle time; the request is repeated after that.

        Args:
            rack: sent to a leader, so that it may name a replica there instead (KIP-392).
        """
        names = names_by_id(partitions)
        version = PLAIN_VERSION
        if names and await self.speaks(node, FETCH, TOPIC_ID_VERSION):
            version = TOPIC_ID_VERSION
        elif await self.speaks(node, FETCH, EPOCH_CHECKING_VERSION):
            version = EPOCH_CHECKING_VERSION
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
            response = await self.ask(node, FETCH, version, body, slot=slot, fetch_bytes=max_bytes)
            throttled_ms = fetch_throttle_ms(response, version)
            self._quotas.note(node, throttled_ms)
            found = parse_fetch(response, version, names)
            if found or not throttled_ms:
                return found
            await asyncio.sleep(throttled_ms / 1000)

    def produces_by_id(self, node: int) -> bool:
        """True if a connected broker supports topic ids in produce requests."""
        link = self.open_link(node)
        return link is not None and link.speaks(PRODUCE, PRODUCE_BY_ID_VERSION)

    def produce(
        self,
        node: int,
        batches: Sequence[tuple[str, int, Buffer]],
        *,
        timeout_ms: int,
        slot: int = 0,
        connection: object | None = None,
        transactional_id: str | None = None,
        topic_ids: Mapping[str, bytes] = MappingProxyType({}),
    ) -> Awaitable[list[ProducedPartition]]:
        """Append one complete batch to each of several partitions with acks=all (Produce v7 or v13).

        Args:
            batches: topic, partition, complete magic-2 batch; at most one batch per partition.
            slot: selects one of the connections to the broker.
            connection: use only this connection.
            transactional_id: of the producer whose open transaction contains all the batches.
            topic_ids: of topics that must not be recreated ones of the same names. They are used if the broker supports
                them in this request (Kafka 4.1), all topics of the request have one, and it is in no transaction.
        """
        by_id = transactional_id is None and all(batch[0] in topic_ids for batch in batches)
        link = self.open_link(node, slot)
        if link is not None and link.connection is connection:
            # Without a coroutine, since thousands of these are sent per second.
            if by_id and link.speaks(PRODUCE, PRODUCE_BY_ID_VERSION):
                body = encode_produce_by_id(batches, topic_ids, timeout_ms=timeout_ms)
                read = partial(self._produced_by_id, node, {topic_ids[batch[0]]: batch[0] for batch in batches})
                return link.connection.request_read(PRODUCE, PRODUCE_BY_ID_VERSION, body, read)
            if link.speaks(PRODUCE, PRODUCE_VERSION):
                body = encode_produce(batches, timeout_ms=timeout_ms, transactional_id=transactional_id)
                return link.connection.request_read(PRODUCE, PRODUCE_VERSION, body, partial(self._parse_produce, node))
        return self._produce(node, batches, timeout_ms, slot, connection, transactional_id, topic_ids if by_id else {})

    async def _produce(
        self,
        node: int,
        batches: Sequence[tuple[str, int, Buffer]],
        timeout_ms: int,
        slot: int,
        connection: object | None,
        transactional_id: str | None,
        topic_ids: Mapping[str, bytes],
    ) -> list[ProducedPartition]:
        ask = partial(self.ask, node, PRODUCE, slot=slot, over=connection)
        if topic_ids and await self.speaks(node, PRODUCE, PRODUCE_BY_ID_VERSION):
            body = encode_produce_by_id(batches, topic_ids, timeout_ms=timeout_ms)
            response = await ask(PRODUCE_BY_ID_VERSION, body)
            return self._produced_by_id(node, {topic_ids[batch[0]]: batch[0] for batch in batches}, response)
        body = encode_produce(batches, timeout_ms=timeout_ms, transactional_id=transactional_id)
        return self._parse_produce(node, await ask(PRODUCE_VERSION, body))

    def _parse_produce(self, node: int, response: memoryview) -> list[ProducedPartition]:
        self._quotas.note(node, produce_throttle_ms(response))
        return parse_produce(response)

    def _produced_by_id(self, node: int, names: Mapping[bytes, str], response: memoryview) -> list[ProducedPartition]:
        produced, throttled_ms = parse_produce_by_id(response, names)
        self._quotas.note(node, throttled_ms)
        return produced

    async def local_log_start(self, node: int, partition: TopicPartition) -> int | None:
        """The first offset on the leader's own disks; older records are in remote storage (KIP-405).

        None if the broker is older than remote storage.
        """
        if not await self.speaks(node, LIST_OFFSETS, LIST_LOCAL_OFFSETS_VERSION):
            return None
        body = encode_local_log_start(*partition)
        response = await self.ask(node, LIST_OFFSETS, LIST_LOCAL_OFFSETS_VERSION, body)
        return self._check_offset(partition, *parse_local_log_start(response))

    async def log_start(self, node: int, partition: TopicPartition) -> int:
        """The first offset of a partition, according to its leader.

        Raises:
            TransientError: the broker does not lead the partition.
            MirrorError: the request failed.
        """
        body = encode_list_start(*partition)
        listed = parse_list_end(await self.ask(node, LIST_OFFSETS, LIST_OFFSETS_VERSION, body))
        return self._check_offset(partition, listed.error_code, listed.offset)

    async def log_ends(self, node: int, partition: TopicPartition) -> tuple[int, int]:
        """The high watermark and the leader's log end offset, which may be after records that are not replicated yet.

        Raises:
            TransientError: the broker does not lead the partition, or has not led it all the time.
            MirrorError: the request failed.
        """
        ends = []
        # Followers report their log end offset too, and it may be behind. Only leaders report the high watermark, and
        # each starts its own epoch: so this broker was the leader when it reported its log end offset.
        for replicated in (True, False, True):
            body = encode_list_end(*partition, replicated=replicated)
            listed = parse_list_end(await self.ask(node, LIST_OFFSETS, LIST_OFFSETS_VERSION, body))
            self._check_offset(partition, listed.error_code, listed.offset)
            ends.append(listed)
        before, end, after = ends
        if before.leader_epoch != after.leader_epoch:
            where = Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)
            raise error_for_code(ErrorCode.NOT_LEADER_OR_FOLLOWER, where=where, doing="read the log end offset")
        return after.offset, end.offset

    async def high_watermarks(
        self, node: int, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int | MirrorError]:
        """The ends of what is replicated of partitions, according to their leader.

        Raises:
            MirrorError: the request failed.
        """
        listed = parse_list_ends(await self.ask(node, LIST_OFFSETS, LIST_OFFSETS_VERSION, encode_list_ends(partitions)))
        ends: dict[TopicPartition, int | MirrorError] = {}
        for partition in partitions:
            found = listed.get(partition)
            try:
                code, offset = (ErrorCode.REQUEST_TIMED_OUT, -1) if found is None else found[:2]
                ends[partition] = self._check_offset(partition, code, offset)
            except MirrorError as error:
                ends[partition] = error
        return ends

    async def last_stable_offset(self, node: int, partition: TopicPartition) -> int:
        """The last stable offset, before which every transaction has ended, according to the leader.

        Raises:
            TransientError: the broker does not lead the partition.
            MirrorError: the request failed.
        """
        body = encode_list_end(*partition, replicated=True, committed=True)
        listed = parse_list_end(await self.ask(node, LIST_OFFSETS, LIST_OFFSETS_VERSION, body))
        return self._check_offset(partition, listed.error_code, listed.offset)

    def _check_offset(self, partition: TopicPartition, code: int, offset: int) -> int:
        if code:
            where = Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)
            needs = Grant.on_topic(Operation.DESCRIBE, partition.topic)
            raise error_for_code(code, where=where, doing="look up an offset", needs=needs)
        return offset

    async def log_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Bytes on disk of every partition of these topics: the largest replica's (DescribeLogDirs).

        Partitions are missing if the permission is missing (DESCRIBE on the cluster).
        """
        names = set(topics)
        sizes: dict[TopicPartition, int] = {}
        for node in self.brokers():
            response = await self.ask(node, DESCRIBE_LOG_DIRS, LOG_DIRS_VERSION, encode_log_dirs())
            for topic, partition, size in parse_log_dirs(response):
                if topic in names:
                    key = TopicPartition(topic, partition)
                    sizes[key] = max(size, sizes.get(key, 0))
        return sizes

    async def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | MirrorError]:
        """The ends of leader epochs in the logs of their current leaders (OffsetForLeaderEpoch, KIP-320).

        -1 if the leader does not know the epoch; an error if the partition's leader did not respond. Partitions whose
        leader does not support the request are missing.
        """
        found: dict[TopicPartition, int | MirrorError] = {}
        again = dict(epochs)
        # The first response may come from a broker that has just lost its leadership.
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
            requests = (self._epoch_ends_of(node, wanted) for node, wanted in by_leader.items())
            for responses in await asyncio.gather(*requests):
                found |= responses
            again = {
                partition: epoch
                for partition, epoch in again.items()
                if isinstance(response := found.get(partition), MirrorError) and response.retriable
            }
        return found

    async def _epoch_ends_of(
        self, node: int, wanted: Sequence[tuple[str, int, int]]
    ) -> dict[TopicPartition, int | MirrorError]:
        try:
            if not await self.speaks(node, OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION):
                return {}
            response = await self.ask(node, OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION, encode_epoch_ends(wanted))
        except ClusterError as error:
            return {TopicPartition(topic, partition): error for topic, partition, _ in wanted}
        ends: dict[TopicPartition, int | MirrorError] = {}
        for each in parse_epoch_ends(response):
            partition = TopicPartition(each.topic, each.partition)
            failed = each.error_code != ErrorCode.NONE
            ends[partition] = self._no_epoch_end(partition, each.error_code) if failed else each.end
        return ends

    def _no_epoch_end(self, partition: TopicPartition, code: int) -> MirrorError:
        where = Where(cluster=self.cluster, topic=partition.topic, partition=partition.partition)
        needs = Grant.on_topic(Operation.DESCRIBE, partition.topic)
        return error_for_code(code, where=where, doing="find the end of a leader epoch", needs=needs)

    async def acls(self, resource: AclResource) -> frozenset[AclBinding]:
        """All ACLs on resources of a type (DescribeAcls v1), from any broker: each has all of them.

        Raises:
            SecurityDisabledError: the cluster has no authorizer.
            AuthorizationError: DESCRIBE on the cluster is missing.
        """
        # Copy tasks import this module, and need no ACLs.
        from mirror_lib.cluster.protocol.acls import (
            DESCRIBE_ACLS,
            DESCRIBE_ACLS_VERSION,
            encode_describe_acls,
            parse_describe_acls,
        )

        question = encode_describe_acls(resource)
        response = parse_describe_acls(
            await self.from_any(lambda node: self.ask(node, DESCRIBE_ACLS, DESCRIBE_ACLS_VERSION, question))
        )
        if response.error_code != ErrorCode.NONE:
            raise error_for_code(
                response.error_code,
                where=Where(cluster=self.cluster),
                doing="list the ACLs",
                detail=response.error_message,
                needs=Grant.on_cluster(Operation.DESCRIBE),
            )
        return response.acls


@asynccontextmanager
async def open_clients(*connections: Connection) -> AsyncIterator[tuple[RawClient, ...]]:
    """Connect to several clusters concurrently; close all if one of them fails."""
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
