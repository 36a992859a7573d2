"""Target partitions that a transform names: they exist or are created, get their own writer, and are recorded.

Where rows will go is not known beforehand. So a target partition is opened when the first row for it comes, and the
open position names it before anything is written there, so that a take-over finds it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import TopicSpec
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import TopicExistsError, error_for_code
from mirror_lib.cluster.raw.backoff import Backoff, may_pass
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.position_format import Position, PositionState, Route
from mirror_lib.cluster.topics.position_store import PositionSnapshot, PositionStore
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.takeover.stable_end import replicated_end
from mirror_lib.copy.transfer.open_positions import transactional_id
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.planning.model import CopyJob, OpenPartition
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

_OPENING_SECONDS = 60.0


def stored_positions(job: CopyJob) -> Mapping[TopicPartition, Position]:
    """The effective position of every source partition of the flow.

    Raises:
        MirrorError: the position topic cannot be read to its end.
    """
    topic = job.positions
    if topic is None:
        return {}
    with PositionStore(topic.connection, topic.topic, topic.source_alias, connector=topic.connector) as store:
        return {source: stored.position for source, stored in store.read_all().positions.items()}


def stored_routes(job: CopyJob, opened: OpenPartition) -> tuple[Route, ...]:
    """Other target partitions that the interrupted run has written since the certain pair, by the newest position."""
    # Another Kafka client, which only interrupted runs with routes need.
    assert opened.takeover is not None
    known = {(route.topic, route.partition): route for route in opened.takeover.routes}
    topic = job.positions
    if topic is None:
        return tuple(known.values())
    with PositionStore(topic.connection, topic.topic, topic.source_alias, connector=topic.connector) as store:
        for stored in store.read_since(PositionSnapshot()):
            position = stored.position
            if position.source != opened.plan.source or position.topic_id != opened.plan.topic_id:
                continue
            if position.state is not PositionState.OPEN or position.offset + 1 < opened.takeover.source_offset:
                continue
            for route in position.routes:
                # The first mention counts: later runs took over from there.
                known.setdefault((route.topic, route.partition), route)
    return tuple(known.values())


class RouteOpener:
    """Opens target partitions as rows come for them."""

    def __init__(self, job: CopyJob, client: RawClient) -> None:
        self._job = job
        self._client = client

    def partition(self, main: OpenPartition, target: TopicPartition) -> OpenPartition:
        """A partition like `main` with another target; it has no writer yet."""
        name = main.transactions
        if name is None and main.transactional_id is not None:
            name = transactional_id(self._job.flow, target)
        # Plans do not have the id of another topic; without it the topic is written by name.
        topic_id = main.plan.target_topic_id if target.topic == main.plan.target.topic else None
        plan = replace(main.plan, target=target, target_topic_id=topic_id)
        return replace(main, plan=plan, transactional_id=name)

    async def open(self, main: OpenPartition, target: TopicPartition, end: int | None) -> OpenPartition:
        """The partition with its writer's identity, and the end of its log.

        Args:
            end: log end offset after all batches of this task's own writer; None if it has none.

        Raises:
            ConfigurationError: the topic has no such partition.
            MirrorError: it cannot be created or written.
        """
        partition = self.partition(main, target)
        if end is not None:
            return replace(partition, target_offset=end, takeover=None)
        await self._exist(main, target)
        log = PartitionReader(self._client, target, self._job.settings, read_committed=False)
        identity = await self._identity(partition)
        log_end = await replicated_end(
            self._client,
            target,
            log,
            retry_seconds=self._job.settings.retry_max_seconds,
            where=_where(self._job, main),
        )
        return replace(
            partition,
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            target_offset=log_end,
            takeover=None,
            taken_over=False,
        )

    async def _identity(self, opened: OpenPartition) -> ProducerIdentity:
        if opened.transactions is not None:
            # The producer of the transaction writes to all target partitions of its rows.
            return ProducerIdentity(opened.producer_id, opened.epoch)
        deadline = time.monotonic() + _OPENING_SECONDS
        if opened.transactional_id is None:
            return await self._client.producers.new_producer_id(deadline=deadline)
        return await self._client.producers.init_producer_id(opened.transactional_id, deadline=deadline)

    async def _exist(self, main: OpenPartition, target: TopicPartition) -> None:
        """Ensure that the partition has a leader; a missing topic is created with the configs of the remote topic."""
        backoff = Backoff(self._job.settings.retry_max_seconds)
        made = False
        while True:
            failed = await self._client.refresh_leaders([target.topic])
            if self._client.leader(target) is not None:
                return
            code = failed.get(target.topic, ErrorCode.NONE)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not made:
                await asyncio.to_thread(self._make, main.plan.target.topic, target.topic)
                made = True
                continue
            where = _where(self._job, main)
            if not code and self._knows(target.topic):
                raise ConfigurationError(
                    f"a transform sends records to partition {target.partition} of {target.topic}, which does not "
                    "exist.",
                    where=where,
                    action="Add partitions to the topic, or set `partition` in the transform.",
                )
            needs = Grant.on_topic(Operation.WRITE, target.topic)
            doing = f"find {target}, the target of a route"
            error = error_for_code(code or ErrorCode.LEADER_NOT_AVAILABLE, where=where, doing=doing, needs=needs)
            if not may_pass(error) or not backoff.record_failure(error):
                raise error
            await asyncio.sleep(backoff.pause_left)

    def _knows(self, topic: str) -> bool:
        return self._client.leader(TopicPartition(topic, 0)) is not None

    def _make(self, like: str, topic: str) -> None:
        with ClusterAdmin(self._job.target) as admin:
            described, configs = admin.describe_topics([like]), admin.topic_configs([like])
            for error in (*described.errors.values(), *configs.errors.values()):
                raise error
            # Retention above all: copied records may be older than a broker's default retention.
            kept = configs[like].set_on_topic()
            spec = TopicSpec(topic, len(described[like].partitions), described[like].replication_factor, kept)
            refused = admin.create_topics([spec])[topic]
        # Another task may have created it first.
        if refused is not None and not isinstance(refused, TopicExistsError):
            raise refused


def _where(job: CopyJob, main: OpenPartition) -> Where:
    return Where(flow=str(job.flow), topic=main.plan.source.topic, partition=main.plan.source.partition)
