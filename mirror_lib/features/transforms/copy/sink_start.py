"""The start of a writing half's partitions: clean, or with a take-over from an earlier run or attempt.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.position_format import Position, Route
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.copy.takeover.fencing import check_not_truncated, fence, fence_name, seconds_until_ended
from mirror_lib.copy.takeover.hanging_transactions import Hanging
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.takeover.recovery import known_poison
from mirror_lib.copy.takeover.stable_end import replicated_end
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.errors import MirrorError, Where
from mirror_lib.features.transforms.copy.batch_builder import OutgoingBatches
from mirror_lib.features.transforms.copy.model import reading_start
from mirror_lib.features.transforms.copy.outputs import Output, PartitionSink
from mirror_lib.features.transforms.copy.routes import RouteOpener, stored_positions, stored_routes
from mirror_lib.features.transforms.copy.row_match import Tail
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.planning.model import CopyJob, OpenPartition
from mirror_lib.topology.names import TopicPartition

#: Number of concurrent take-overs.
_AT_A_TIME = 8
_TAKEOVER_SECONDS = 60.0
#: Broker default of the maximum transaction timeout (`transaction.max.timeout.ms`).
_LONGEST_TRANSACTION_MS = 900_000
#: Seconds of a periodic transaction, in addition to retries while a cluster does not respond.
_TRANSACTION_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SinkStart:
    """Creates the outputs of a bin."""

    job: CopyJob
    #: Of the target.
    client: RawClient
    opener: RouteOpener
    #: As in `RowJob`.
    exact: bool
    #: Whether rows may go elsewhere than to their partition's own target.
    routes: bool

    async def outputs(self, partitions: Sequence[OpenPartition]) -> list[Output]:
        """The outputs of the partitions, in their order; partitions whose take-over failed are marked as failed."""
        groups: dict[str, list[OpenPartition]] = {}
        for opened in partitions:
            if opened.transactions is not None:
                groups.setdefault(opened.transactions, []).append(opened)
        limit = asyncio.Semaphore(_AT_A_TIME)

        async def alone(opened: OpenPartition) -> list[Output]:
            async with limit:
                try:
                    return [await self._begin(opened)]
                except MirrorError as error:
                    return [failed_output(self.job, opened, error)]

        async def together(name: str, group: Sequence[OpenPartition]) -> list[Output]:
            async with limit:
                try:
                    return await self._begin_in_transactions(name, group)
                except MirrorError as error:
                    return [failed_output(self.job, opened, error) for opened in group]

        started = await asyncio.gather(
            *(alone(opened) for opened in partitions if opened.transactions is None),
            *(together(name, group) for name, group in groups.items()),
        )
        by_source = {output.opened.plan.source: output for outputs in started for output in outputs}
        return [by_source[opened.plan.source] for opened in partitions]

    # ------------------------------------------------------------ without transactions

    async def _begin(self, opened: OpenPartition) -> Output:
        if opened.takeover is None:
            return Output(opened, new_sink(self.job, opened))
        output = Output(opened, await self._taken_over(opened))
        output.main.known_to = opened.plan.start
        if self.routes:
            # Routed rows since the certain pair; a later attempt's job does not have these routes.
            for route in await asyncio.to_thread(stored_routes, self.job, opened):
                await self._take_over_route(output, opened, route)
        return output

    async def _taken_over(self, opened: OpenPartition) -> PartitionSink:
        takeover = opened.takeover
        assert takeover is not None
        log = self._log(opened)
        identity, end = await fence(self.job, opened, self.client, log)
        taken = replace(
            opened,
            plan=replace(opened.plan, start=reading_start(opened), leader_epoch=None),
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            target_offset=end,
            takeover=None,
            taken_over=True,
        )
        sink = new_sink(self.job, taken, recovered=takeover.runs)
        if self.exact and not takeover.in_transactions:
            first = max(takeover.target_offset, takeover.target_log_start)
            sink.tail = Tail(log, opened.plan.target, first, end, settings=self.job.settings)
        return sink

    async def _take_over_route(self, output: Output, opened: OpenPartition, route: Route) -> None:
        assert opened.takeover is not None
        routed = self.opener.partition(output.main.copy.opened, TopicPartition(route.topic, route.partition))
        takeover = replace(
            opened.takeover,
            target_offset=route.target_offset,
            target_log_start=0,
            # The earlier writer there had its own identity; fencing by the transactional id reaches it.
            producer_id=None,
            epoch=None,
            skipped=(),
            runs=(),
        )
        sink = await self._taken_over(replace(routed, takeover=takeover, taken_over=False))
        output.routed[sink.copy.target] = sink
        output.routes = (*output.routes, route)

    # ------------------------------------------------------------ in transactions

    async def _begin_in_transactions(self, name: str, group: Sequence[OpenPartition]) -> list[Output]:
        """Start partitions that share their transactions: one producer writes all of them."""
        unclean = [opened for opened in group if opened.takeover is not None]
        stored: Mapping[TopicPartition, Position] = {}
        if unclean:
            await self._settle_hanging(name, unclean)
            # Before any other change, so that no other writer stores positions or rows any more.
            await self._fence(name, unclean)
            stored = await asyncio.to_thread(stored_positions, self.job)
        before = {
            opened.plan.source: await self._begin(opened)
            for opened in unclean
            if not _is_exact(stored.get(opened.plan.source))
        }
        timeout_ms = _transaction_timeout_ms(self.job)
        at = time.time()
        identity = await self.client.producers.init_producer_id(
            name, deadline=time.monotonic() + _TAKEOVER_SECONDS, transaction_timeout_ms=timeout_ms
        )
        transaction = Transaction(self.job, self.client, name, identity, timeout_seconds=timeout_ms / 1000)
        outputs = []
        for opened in group:
            output = before.get(opened.plan.source)
            if output is None:
                output = await self._behind_transactions(name, opened, stored.get(opened.plan.source))
            for sink in output.sinks:
                sink.copy.opened = _written_by(sink.copy.opened, name, identity, at)
            output.transaction = transaction
            output.start = output.main.copy.opened.plan.start
            outputs.append(output)
        return outputs

    async def _settle_hanging(self, name: str, unclean: Sequence[OpenPartition]) -> None:
        """Complete the markers that a dead run's last commit lacks; fencing would abort that transaction."""
        where = Where(flow=str(self.job.flow), cluster=self.client.cluster)
        hanging = Hanging(self.client, name, retry_seconds=self.job.settings.retry_max_seconds, where=where)
        stored = await asyncio.to_thread(stored_positions, self.job)
        routed: set[TopicPartition] = set()
        counted: dict[TopicPartition, int] = {}
        for opened in unclean:
            position, target = stored.get(opened.plan.source), opened.plan.target
            if position is not None and position.in_transactions:
                routed |= {TopicPartition(route.topic, route.partition) for route in position.routes}
                counted[target] = max(counted.get(target, 0), position.target_offset or 0)
        found = await hanging.find({opened.plan.target for opened in unclean} | routed)
        if found is not None:
            await hanging.settle(found, counted)

    async def _fence(self, name: str, unclean: Sequence[OpenPartition]) -> None:
        """Fence the earlier writers, with or without transactions; wait once if fencing may not reach them."""
        by_name = await self._fence_name(name, {opened.plan.target for opened in unclean})
        lease_seconds = 0.0
        for opened in unclean:
            assert opened.takeover is not None
            fenced = {by_name.producer_id}
            own = opened.transactional_id
            if own not in (None, name):
                # An earlier run may have written without transactions.
                fenced.add((await self._fence_name(own, {opened.plan.target})).producer_id)
            lease_seconds = max(lease_seconds, seconds_until_ended(opened.takeover, fenced))
        await asyncio.sleep(lease_seconds)

    async def _fence_name(self, name: str, targets: Collection[TopicPartition]) -> ProducerIdentity:
        retry_seconds = self.job.settings.retry_max_seconds
        where = Where(flow=str(self.job.flow), cluster=self.client.cluster)
        return await fence_name(self.client, name, targets, retry_seconds=retry_seconds, where=where)

    async def _behind_transactions(self, name: str, opened: OpenPartition, position: Position | None) -> Output:
        if opened.takeover is None:
            return Output(opened, new_sink(self.job, opened))
        assert position is not None
        plan = opened.plan
        where = Where(flow=str(self.job.flow), topic=plan.source.topic, partition=plan.source.partition)
        retry_seconds = self.job.settings.retry_max_seconds
        end = await replicated_end(
            self.client, plan.target, self._log(opened), retry_seconds=retry_seconds, where=where
        )
        check_not_truncated(plan.target, end, position.target_offset or 0, where)
        taken = replace(
            opened,
            plan=replace(plan, start=position.offset + 1, leader_epoch=position.leader_epoch),
            target_offset=end,
            takeover=None,
            taken_over=True,
        )
        sink = new_sink(self.job, taken, recovered=position.runs)
        sink.copy.note_poison([known_poison(each) for each in position.skipped])
        output = Output(opened, sink, routes=position.routes)
        for route in position.routes:
            target = TopicPartition(route.topic, route.partition)
            routed = await self.opener.open(_written_by(taken, name, None), target, None)
            start = replace(routed.plan, start=position.offset + 1)
            output.routed[target] = new_sink(self.job, replace(routed, plan=start))
        return output

    def _log(self, opened: OpenPartition) -> PartitionReader:
        plan, settings = opened.plan, self.job.settings
        where = Where(flow=str(self.job.flow), topic=plan.source.topic, partition=plan.source.partition)
        # Aborted rows do not count, regardless of their producer.
        return PartitionReader(self.client, plan.target, settings, read_committed=True, interrupted=where)


def ends_in_parts(job: CopyJob) -> bool:
    """True if transactions are committed periodically during the copy.

    A position must not pass skipped records that only the reading half knows.
    """
    return job.settings.poison_policy is PoisonPolicy.FAIL


def _transaction_timeout_ms(job: CopyJob) -> int:
    """Transaction timeout: how long readers wait for a dead run's open transaction, unless the next run ends it.

    Without periodic commits a transaction lasts as long as the copy.
    """
    if not ends_in_parts(job):
        return _LONGEST_TRANSACTION_MS
    seconds = job.settings.retry_max_seconds + _TRANSACTION_SECONDS
    return min(int(seconds * 1000), _LONGEST_TRANSACTION_MS)


def _is_exact(position: Position | None) -> bool:
    """True if a position was stored in a transaction, so that it is exact."""
    return position is not None and position.in_transactions


def _written_by(opened: OpenPartition, name: str, identity: ProducerIdentity | None, at: float = 0.0) -> OpenPartition:
    if identity is None:
        return replace(opened, transactional_id=name)
    return replace(opened, transactional_id=name, producer_id=identity.producer_id, epoch=identity.epoch, claimed_at=at)


def new_sink(job: CopyJob, opened: OpenPartition, recovered: Iterable[OffsetRun] = ()) -> PartitionSink:
    """A sink for rows, starting after the recovered ones."""
    settings = job.settings
    skip = settings.poison_policy is not PoisonPolicy.FAIL
    batches = OutgoingBatches(opened.plan, settings, start=opened.plan.start, skip=skip)
    copy = PartitionCopy(
        job.flow,
        opened,
        settings,
        read_committed=job.read_committed,
        recovered=tuple(recovered),
        assembler=batches,
    )
    return PartitionSink(copy, batches)


def failed_output(job: CopyJob, opened: OpenPartition, error: MirrorError) -> Output:
    """A partition whose take-over failed or was not tried; its position stays open."""
    sink = new_sink(job, replace(opened, plan=replace(opened.plan, start=reading_start(opened))))
    sink.copy.fail(error, certain=opened.takeover is None and opened.transactions is None)
    return Output(opened, sink, broken=True)
