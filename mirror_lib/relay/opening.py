"""Opening positions before a copy: take over the writer's identity, say so in the position topic, see who was before.

This is the clean start of the commit protocol (docs/architecture.md, "Exactly once"): the last record of a partition
is `closed` and its target ends where the record says. Anything else is refused with a typed error, and the target is
left as it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mirror_lib.cluster.admin import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.internal_topics import PositionSnapshot
from mirror_lib.cluster.positions import Position, PositionState
from mirror_lib.cluster.raw import ProducerIdentity, open_clients
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import (
    MirrorError,
    TargetDivergedError,
    TargetNotEmptyError,
    TargetTruncatedError,
    UncleanStartError,
    Where,
)
from mirror_lib.relay.gather import FlowClusters, of_flow
from mirror_lib.relay.model import OpenPartition, PartitionPlan, PartitionProblem, RunPlan
from mirror_lib.topology.names import FlowId, TopicPartition

#: Transaction coordinators are asked for this many partitions at a time.
_CONCURRENT_TAKEOVERS = 64
_TAKEOVER_SECONDS = 60.0


class TargetEnds(NamedTuple):
    """The extent of a target partition's log."""

    start: int
    end: int


def transactional_id(flow: FlowId, target: TopicPartition) -> str:
    """The id that names the one writer of a target partition; used for its producer id and epoch only."""
    return f"mirror:{flow}:{target}"


def open_partitions(
    flow: FlowConfig, plan: RunPlan, clusters: FlowClusters, *, run_id: str
) -> tuple[tuple[tuple[OpenPartition, ...], ...], tuple[PartitionProblem, ...]]:
    """Open every planned partition; returns the bins of those that may be copied, and why the others may not."""
    if not plan.partitions:
        return (), ()
    refused: dict[TopicPartition, MirrorError] = {}
    startable, ends = _startable(flow, plan.partitions, clusters, refused)
    takeover = _take_over(flow.flow, {partition.target for partition in startable}, clusters.target_data)
    for partition in startable:
        outcome = takeover[partition.target]
        if isinstance(outcome, MirrorError):
            refused[partition.source] = of_flow(flow, outcome, partition.source)
    opened = {
        partition.source: OpenPartition(
            plan=partition,
            transactional_id=transactional_id(flow.flow, partition.target),
            producer_id=outcome.producer_id,
            epoch=outcome.epoch,
            target_offset=ends[partition.target].end,
        )
        for partition in startable
        if isinstance(outcome := takeover[partition.target], ProducerIdentity)
    }
    clusters.positions.write([open_position(partition, run_id) for partition in opened.values()])
    # Of two runs that open at the same time, the later record sees the earlier one, and its run stands back.
    for source, why in _claimed_by_others(clusters, opened, run_id).items():
        del opened[source]
        refused[source] = UncleanStartError(
            why,
            where=Where(flow=str(flow.flow), topic=source.topic, partition=source.partition),
            action="Let only one run of a flow be active; run again when the other has ended.",
        )
    bins = tuple(tuple(opened[p.source] for p in bin_ if p.source in opened) for bin_ in plan.bins)
    problems = tuple(PartitionProblem(source, error) for source, error in sorted(refused.items()))
    return bins, problems


def store_starts_at_end(
    flow: FlowConfig, plan: RunPlan, clusters: FlowClusters, *, run_id: str
) -> tuple[PartitionProblem, ...]:
    """Store the end of the source as the position of partitions that begin there, so that the next run copies on.

    Returns why some could not begin.
    """
    refused: dict[TopicPartition, MirrorError] = {}
    if plan.starts_at_end:
        startable, ends = _startable(flow, plan.starts_at_end, clusters, refused)
        clusters.positions.write(
            Position(
                topic=partition.source.topic,
                partition=partition.source.partition,
                offset=partition.start - 1,
                target_offset=ends[partition.target].end,
                state=PositionState.CLOSED,
                producer_id=None,
                epoch=None,
                run_id=run_id,
                topic_id=partition.topic_id,
            )
            for partition in startable
        )
    return tuple(PartitionProblem(source, error) for source, error in sorted(refused.items()))


def _startable(
    flow: FlowConfig,
    partitions: Sequence[PartitionPlan],
    clusters: FlowClusters,
    refused: dict[TopicPartition, MirrorError],
) -> tuple[list[PartitionPlan], dict[TopicPartition, TargetEnds]]:
    """The partitions that pass `check_clean_start`, and where their targets end; the others go to `refused`."""
    last = {source: stored.position for source, stored in clusters.positions_at_plan.positions.items()}
    ends = _target_ends(clusters, partitions, refused)
    startable = []
    for partition in partitions:
        if partition.source in refused:
            continue
        writers = clusters.sources_of(partition.target)
        try:
            _check_readable(flow.flow, partition, writers, clusters.positions_at_plan)
            check_clean_start(flow.flow, partition, last, writers, ends[partition.target])
        except MirrorError as error:
            refused[partition.source] = error
        else:
            startable.append(partition)
    return startable, ends


def _check_readable(
    flow: FlowId, partition: PartitionPlan, writers: Iterable[TopicPartition], snapshot: PositionSnapshot
) -> None:
    """Whether the position of everything that goes to the same target partition is known.

    Raises:
        UncleanStartError: one of them cannot be read.
    """
    unreadable = next((source for source in writers if source in snapshot.unreadable), None)
    if unreadable is not None:
        raise UncleanStartError(
            f"the newest position of {unreadable}, which goes to {partition.target} too, cannot be read: "
            "what was copied is not known.",
            where=Where(flow=str(flow), topic=partition.source.topic, partition=partition.source.partition),
            action="Find out who writes to the position topic; only MirrorMaker 2 and this program may.",
        )


def open_position(opened: OpenPartition, run_id: str) -> Position:
    """The record that claims a partition: where it stands, and who writes from now on."""
    plan = opened.plan
    return Position(
        topic=plan.source.topic,
        partition=plan.source.partition,
        offset=plan.start - 1,
        target_offset=opened.target_offset,
        state=PositionState.OPEN,
        producer_id=opened.producer_id,
        epoch=opened.epoch,
        run_id=run_id,
        topic_id=plan.topic_id,
    )


def check_clean_start(
    flow: FlowId,
    partition: PartitionPlan,
    last: Mapping[TopicPartition, Position],
    writers: Iterable[TopicPartition],
    ends: TargetEnds,
) -> None:
    """Whether copying may begin without looking at what stands on the target.

    Args:
        last: the last record of every source partition.
        writers: all source partitions that go to this target partition; more than one in a merge.
        ends: what the target partition holds now.

    Raises:
        UncleanStartError: a position that goes to this target partition was not closed.
        TargetNotEmptyError: nothing was ever copied, yet there are records.
        TargetDivergedError: the target holds more than was copied.
        TargetTruncatedError: the target holds less.
    """
    where = Where(flow=str(flow), topic=partition.source.topic, partition=partition.source.partition)
    known = [last[source] for source in writers if source in last]
    unclosed = next((position for position in known if position.state is not PositionState.CLOSED), None)
    expected = max((position.target_offset for position in known if position.target_offset is not None), default=None)
    if unclosed is not None:
        owner = f"run {unclosed.run_id}" if unclosed.run_id else "MirrorMaker 2, which keeps no target offset"
        raise UncleanStartError(
            f"its last position (source offset {unclosed.offset}) was written by {owner} and is not closed: "
            f"what stands on {partition.target} behind it is not known.",
            where=where,
            action="Make sure that no other run is active. Recovery of interrupted runs reads the target's tail.",
        )
    if expected is None:
        if ends.end > ends.start:
            raise TargetNotEmptyError(
                f"{partition.target} already holds records ({ends.start} to {ends.end - 1}), "
                "though nothing is known to have been copied there.",
                where=where,
                action="Copy under another name (mirror.topics.rename), or delete the target topic if it may go.",
            )
        return
    if ends.end > expected:
        raise TargetDivergedError(
            f"{partition.target} ends at {ends.end}, but this flow wrote it only up to {expected}: "
            "somebody else writes there.",
            where=where,
            action="Find the other writer; only the replicator may write to remote topics.",
        )
    if ends.end < expected:
        raise TargetTruncatedError(
            f"{partition.target} ends at {ends.end}, but this flow had written it up to {expected}.",
            where=where,
            action="The target lost data or was created again; find out why before the position is reset.",
        )


def _target_ends(
    clusters: FlowClusters, partitions: Sequence[PartitionPlan], refused: dict[TopicPartition, MirrorError]
) -> dict[TopicPartition, TargetEnds]:
    targets = sorted({partition.target for partition in partitions})
    starts = clusters.target_admin.list_offsets(targets, OffsetSpec.EARLIEST)
    ends = clusters.target_admin.list_offsets(targets, OffsetSpec.LATEST)
    found: dict[TopicPartition, TargetEnds] = {}
    for partition in partitions:
        start, end = starts[partition.target], ends[partition.target]
        error = start.error or end.error
        if error is not None:
            refused[partition.source] = of_flow(clusters.flow, error, partition.source)
        else:
            found[partition.target] = TargetEnds(start.offset, end.offset)
    return found


def _take_over(
    flow: FlowId, targets: Iterable[TopicPartition], target: Connection
) -> dict[TopicPartition, ProducerIdentity | MirrorError]:
    """InitProducerId for every target partition, many at a time."""

    async def all_at_once() -> dict[TopicPartition, ProducerIdentity | MirrorError]:
        limit = asyncio.Semaphore(_CONCURRENT_TAKEOVERS)
        deadline = time.monotonic() + _TAKEOVER_SECONDS
        async with open_clients(target) as (client,):

            async def one(partition: TopicPartition) -> ProducerIdentity | MirrorError:
                async with limit:
                    try:
                        return await client.init_producer_id(transactional_id(flow, partition), deadline=deadline)
                    except MirrorError as error:
                        return error

            wanted = sorted(targets)
            outcomes = await asyncio.gather(*(one(partition) for partition in wanted))
            return dict(zip(wanted, outcomes, strict=True))

    return asyncio.run(all_at_once())


def _claimed_by_others(
    clusters: FlowClusters, opened: Mapping[TopicPartition, OpenPartition], run_id: str
) -> dict[TopicPartition, str]:
    """Why partitions that we opened are not ours alone."""
    before_us: dict[TopicPartition, str | None] = {}
    at_all: dict[TopicPartition, str | None] = {}
    ours: set[TopicPartition] = set()
    for stored in clusters.positions.read_since(clusters.positions_at_plan):
        source = stored.position.source
        if stored.position.run_id == run_id:
            ours.add(source)
            continue
        at_all[source] = stored.position.run_id
        if source not in ours:
            before_us[source] = stored.position.run_id
    claimed = {}
    for source, partition in opened.items():
        # Records about different source partitions have no common order: in a merge both runs stand back.
        others = [other for other in clusters.sources_of(partition.plan.target) if other != source and other in at_all]
        if source in before_us:
            claimed[source] = f"another run ({before_us[source] or 'unknown'}) opened this partition at the same time."
        elif others:
            claimed[source] = (
                f"another run ({at_all[others[0]] or 'unknown'}) opened {others[0]}, which goes to "
                f"{partition.plan.target} too, at the same time."
            )
        elif source not in ours:
            claimed[source] = "our own record that opens this partition cannot be read back from the position topic."
    return claimed
