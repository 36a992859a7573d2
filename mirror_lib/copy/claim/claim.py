"""Claim partitions before a copy: take over the writer's identity, store a claim, detect earlier claims.

This is the beginning of the commit protocol (docs/architecture.md, "Exactly once"). A start is clean if the last
record of a partition is `closed` and its target ends where the record says; nothing is then fenced or read.
Any other start is a take-over, which the copy task does (mirror_lib.copy.takeover.recovery), or is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import (
    NOTHING_COPIED,
    Position,
    PositionState,
    has_same_offsets,
    name_of_copy,
)
from mirror_lib.cluster.topics.position_store import PositionSnapshot
from mirror_lib.config.data_plane import TopicChain
from mirror_lib.config.first_start import EARLIEST, first_starts
from mirror_lib.config.model import Fencing, FlowConfig
from mirror_lib.config.topology import replication_policy
from mirror_lib.copy.claim.start_rules import StartRules, TargetEnds, needs_sync, start_of
from mirror_lib.copy.claim.unknown_records import with_records
from mirror_lib.copy.claim.void_syncs import newest_syncs, rewind_syncs_of_other_logs
from mirror_lib.copy.transfer.open_positions import (
    hole_writer_id,
    open_position,
    transactional_id,
    transactions_of,
)
from mirror_lib.errors import DirtyStartError, MirrorError, Where
from mirror_lib.identity.last_records import MOST_PARTITIONS
from mirror_lib.identity.positions import position_row
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.syncs import BEFORE_ALL
from mirror_lib.planning.by_transform_chain import row_copy
from mirror_lib.planning.facts import with_flow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import HoleWriter, OpenPartition, PartitionPlan, PartitionProblem, RunPlan, Takeover
from mirror_lib.planning.next_steps import after_malformed_position
from mirror_lib.topology.names import FlowId, TopicPartition

#: Number of partitions for which transaction coordinators are asked at a time.
_CONCURRENT_TAKEOVERS = 64
_TAKEOVER_SECONDS = 60.0
#: Kafka's value for "no producer".
_NO_PRODUCER = -1


def open_partitions(
    flow: FlowConfig, plan: RunPlan, clusters: FlowClusters, *, run_id: str, ledger: Ledger
) -> tuple[tuple[tuple[OpenPartition, ...], ...], tuple[PartitionProblem, ...]]:
    """Claim every planned partition; return the bins of those that may be copied, and the errors of the others."""
    if not plan.partitions:
        return (), ()
    refused: dict[TopicPartition, MirrorError] = {}
    at = time.time()
    starts = _starts(flow, plan.partitions, clusters, refused)
    _rewind_syncs_of_first(flow, starts, clusters)
    clean = {start.partition.target for start in starts if start.takeover is None}
    tasks = {p.source: number for number, bin_ in enumerate(plan.bins) for p in bin_}
    identities = _identities(_names(flow, clean, set(tasks.values())), clusters.target_data)
    chains = chains_of(flow, {start.partition.source.topic for start in starts})
    opened: dict[TopicPartition, OpenPartition] = {}
    for start in (_in_a_copy(flow, start, clusters, run_id) for start in starts):
        identity, markers = identities.get(start.partition.target), identities.get(tasks[start.partition.source])
        if isinstance(identity, MirrorError):
            refused[start.partition.source] = with_flow(flow, identity, start.partition.source)
        elif isinstance(markers, MirrorError):
            refused[start.partition.source] = with_flow(flow, markers, start.partition.source)
        else:
            claim = clusters.positions_at_plan.claims.get(start.partition.source, 0) + 1
            target = start.partition.target
            merged = len(clusters.sources_of(target)) > 1
            transactions = transactions_of(flow, chains.get(start.partition.source.topic), target, merged=merged)
            partition = _claimed_partition(flow, start, identity, claim, transactions, at)
            if markers is not None:
                writer = HoleWriter(tasks[partition.plan.source], markers.producer_id, markers.epoch)
                partition = replace(partition, hole_writer=writer)
            opened[start.partition.source] = partition
    if any(each.transactions is not None for each in opened.values()):
        # Before anything is claimed.
        row_copy(str(flow.flow))
    _write_claims(flow, [open_position(partition, run_id) for partition in opened.values()], clusters, ledger)
    # If two runs claim at the same time, the later record sees the earlier one, and takes over from its run.
    claimed = _claimed_by_others(clusters, opened, run_id)
    for source, other in claimed.items():
        taken = _from_claimant(flow, opened[source], other, known=source in clusters.positions_at_plan.positions)
        if isinstance(taken, MirrorError):
            del opened[source]
            refused[source] = with_flow(flow, taken, source)
        else:
            opened[source] = taken
    # Both claims have the same number so far.
    again = [open_position(opened[source], run_id) for source in claimed if source in opened]
    _write_claims(flow, again, clusters, ledger)
    bins = tuple(tuple(opened[p.source] for p in bin_ if p.source in opened) for bin_ in plan.bins)
    problems = tuple(PartitionProblem(source, error) for source, error in sorted(refused.items()))
    return bins, problems


def _in_a_copy(flow: FlowConfig, start: _Start, clusters: FlowClusters, run_id: str) -> _Start:
    """The start; the first one of a partition begins a copy."""
    same, stored = flow.copy_settings.same_offsets, clusters.positions_at_plan.positions.get(start.partition.source)
    if stored is not None and (
        stored.position.offset != NOTHING_COPIED or has_same_offsets(stored.position.copy) is same
    ):
        return start
    return start._replace(partition=replace(start.partition, copy=name_of_copy(run_id, same_offsets=same)))


def _rewind_syncs_of_first(flow: FlowConfig, starts: Iterable[_Start], clusters: FlowClusters) -> None:
    """Before the first claims: once they are stored, nothing shows that the copy has just begun."""
    known = clusters.positions_at_plan.positions
    rewind_syncs_of_other_logs(
        flow, {start.partition.source: start.ends.end for start in starts if start.partition.source not in known}
    )


def _write_claims(flow: FlowConfig, claims: Sequence[Position], clusters: FlowClusters, ledger: Ledger) -> None:
    """Store claims; in the ledger first, so that it knows of all that Kafka has.

    A first claim comes later: a position that only the ledger has would count as lost.
    """
    known = clusters.positions_at_plan.positions
    if repeated := [position_row(flow, each) for each in claims if each.source in known]:
        ledger.save_claims(repeated)
    clusters.positions.write(claims)
    if first := [position_row(flow, each) for each in claims if each.source not in known]:
        ledger.save_positions(first)


def chains_of(flow: FlowConfig, topics: Iterable[str]) -> Mapping[str, TopicChain]:
    """The transform chains of those source topics that have one."""
    transforms = flow.transforms
    if not transforms:
        return {}
    is_heartbeats = replication_policy(flow).is_heartbeats_topic
    chains = {topic: transforms.chain_of(topic, heartbeats=is_heartbeats(topic)) for topic in topics}
    return {topic: chain for topic, chain in chains.items() if chain}


def _claimed_partition(
    flow: FlowConfig, start: _Start, identity: ProducerIdentity | None, claim: int, transactions: str | None, at: float
) -> OpenPartition:
    fenced = flow.fencing is Fencing.TRANSACTIONAL
    takeover = start.takeover
    if takeover is not None:
        # Until the copy task has its own identity, the last known one names the producer to fence.
        identity = ProducerIdentity(
            _NO_PRODUCER if takeover.producer_id is None else takeover.producer_id,
            _NO_PRODUCER if takeover.epoch is None else takeover.epoch,
        )
    assert identity is not None
    return OpenPartition(
        plan=start.partition,
        transactional_id=transactional_id(flow.flow, start.partition.target) if fenced else None,
        producer_id=identity.producer_id,
        epoch=identity.epoch,
        target_offset=start.ends.end if takeover is None else takeover.target_offset,
        takeover=takeover,
        claim=claim,
        transactions=transactions,
        claimed_at=at,
        lease_seconds=flow.run_lease_seconds,
    )


def _from_claimant(
    flow: FlowConfig, opened: OpenPartition, claim: _Claim, *, known: bool
) -> OpenPartition | MirrorError:
    # Without a position it is unknown which of the target's records existed before the other run's first start.
    if claim.other is None or claim.other.backfill is not None or not (known or opened.target_offset == 0):
        return DirtyStartError(
            claim.why, action="Let only one run of a flow be active; run again when the other has ended."
        )
    number = max(opened.claim, claim.other.claim or 0) + 1
    if opened.takeover is not None:
        return replace(opened, claim=number)
    # This run had a clean start: all records up to the target's end are certain, and the other run appends after it.
    takeover = Takeover(
        opened.plan.start,
        opened.target_offset,
        producer_id=claim.other.producer_id,
        epoch=claim.other.epoch,
        lease_seconds=flow.run_lease_seconds,
        skipped=claim.other.skipped,
        runs=claim.other.runs,
        routes=claim.other.routes,
        in_transactions=claim.other.in_transactions,
        hole_writers=claim.other.hole_writers,
    )
    return replace(opened, takeover=takeover, claim=number)


def store_first_positions(
    flow: FlowConfig, plan: RunPlan, clusters: FlowClusters, ledger: Ledger, *, run_id: str
) -> tuple[PartitionProblem, ...]:
    """Store the start of partitions that have nothing to copy yet, so that the next run compares them like any other.

    MirrorMaker 2 continues there too: a position before the first offset is negative, which it treats as missing.

    Return the errors of partitions that could not start.
    """
    refused: dict[TopicPartition, MirrorError] = {}
    if plan.first_seen:
        found = _starts(flow, plan.first_seen, clusters, refused)
        _rewind_syncs_of_first(flow, found, clusters)
        starts = (_in_a_copy(flow, start, clusters, run_id) for start in found)
        first = [
            start.partition.with_identity(
                Position(
                    topic=start.partition.source.topic,
                    partition=start.partition.source.partition,
                    offset=start.partition.start - 1,
                    target_offset=start.ends.end,
                    state=PositionState.CLOSED,
                    producer_id=None,
                    epoch=None,
                    run_id=run_id,
                    topic_id=start.partition.topic_id,
                    claim=clusters.positions_at_plan.claims.get(start.partition.source, 0) + 1,
                )
            )
            for start in starts
        ]
        clusters.positions.write(first)
        ledger.save_positions([position_row(flow, each) for each in first])
    chosen = first_starts(flow)
    return tuple(
        PartitionProblem(source, error)
        for source, error in sorted(refused.items())
        # A partition that starts at `earliest` can wait for its first record: nothing is skipped until then.
        if chosen.of(source.topic) != EARLIEST
    )


def name_positions(plan: RunPlan, clusters: FlowClusters, *, run_id: str) -> None:
    """Add target topic, its id, cluster ids and last copied records to the positions of idle partitions.

    Positions of MirrorMaker 2 and of version 0.1.0 have none of these. The plan has compared them with both logs. A
    round names so many that reading the records does not delay it.
    """
    snapshot = clusters.positions_at_plan
    altered = {each.after.source for each in clusters.altered}
    unnamed = sorted(plan.unnamed, key=lambda each: each.source not in altered)[: max(MOST_PARTITIONS, len(altered))]
    known = {each.source: snapshot.positions[each.source].position for each in unnamed}
    # The record before an offset that an operator has chosen was not copied from there.
    completed = with_records(
        {source: position for source, position in known.items() if source not in altered},
        {each.source: each.target for each in unnamed},
        clusters,
    )
    named = []
    for partition in unnamed:
        position = completed.get(partition.source, known[partition.source])
        # MirrorMaker 2 has no claim numbers: of its positions the newest record counts.
        if position.claim is not None:
            position = replace(position, claim=snapshot.claims.get(partition.source, 0) + 1, run_id=run_id)
        named.append(partition.with_identity(position))
    clusters.positions.write(named)


class _Start(NamedTuple):
    """A partition that may start: at the end of its target, or with a take-over."""

    partition: PartitionPlan
    ends: TargetEnds
    takeover: Takeover | None


def _starts(
    flow: FlowConfig,
    partitions: Sequence[PartitionPlan],
    clusters: FlowClusters,
    refused: dict[TopicPartition, MirrorError],
) -> list[_Start]:
    """How each partition starts; partitions that may not start go to `refused`."""
    last = {source: stored.position for source, stored in clusters.positions_at_plan.positions.items()}
    ends = _target_ends(clusters, partitions, refused)
    rules = StartRules(
        flow.flow,
        flow.existing_target,
        flow.run_lease_seconds,
        _syncs(flow, partitions, last),
        most_holes=flow.copy_settings.most_holes,
    )
    starts = []
    for partition in partitions:
        if partition.source in refused:
            continue
        writers = clusters.sources_of(partition.target)
        try:
            _check_readable(flow.flow, partition, writers, clusters.positions_at_plan)
            takeover = start_of(rules, partition, last, writers, ends[partition.target])
        except MirrorError as error:
            refused[partition.source] = error
        else:
            starts.append(_Start(partition, ends[partition.target], takeover))
    return starts


def _syncs(
    flow: FlowConfig, partitions: Sequence[PartitionPlan], last: Mapping[TopicPartition, Position]
) -> Mapping[TopicPartition, OffsetSync]:
    """The newest offset-syncs if MirrorMaker 2 wrote a position of these partitions."""
    if not any(needs_sync(last.get(partition.source)) for partition in partitions):
        return {}
    return {source: sync for source, sync in newest_syncs(flow).items() if sync.upstream_offset != BEFORE_ALL}


def _check_readable(
    flow: FlowId, partition: PartitionPlan, writers: Iterable[TopicPartition], snapshot: PositionSnapshot
) -> None:
    """Check that the positions of all source partitions with the same target partition are known.

    Raises:
        DirtyStartError: one of the positions cannot be read.
    """
    unreadable = next((source for source in writers if source in snapshot.unreadable), None)
    if unreadable is not None:
        raise DirtyStartError(
            f"the latest position of {unreadable}, which is also copied to {partition.target}, is malformed: its "
            "last copied offset is unknown.",
            where=Where(flow=str(flow), topic=partition.source.topic, partition=partition.source.partition),
            action=after_malformed_position(
                Where(flow=str(flow), topic=unreadable.topic, partition=unreadable.partition)
            ),
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
            refused[partition.source] = with_flow(clusters.flow, error, partition.source)
        else:
            found[partition.target] = TargetEnds(start.offset, end.offset)
    return found


#: A target partition, or the number of a task.
_Writer = TopicPartition | int


def _names(flow: FlowConfig, targets: Iterable[TopicPartition], tasks: Iterable[int]) -> dict[_Writer, str | None]:
    """The transactional ids of the writers of partitions and, with `mirror.offsets = same`, of markers."""
    fenced = flow.fencing is Fencing.TRANSACTIONAL
    names: dict[_Writer, str | None] = {
        target: transactional_id(flow.flow, target) if fenced else None for target in sorted(targets)
    }
    if flow.copy_settings.same_offsets:
        names |= {number: hole_writer_id(flow.flow, number) for number in tasks}
    return names


def _identities(
    names: Mapping[_Writer, str | None], target: Connection
) -> dict[_Writer, ProducerIdentity | MirrorError]:
    """The identity of every writer by its transactional id, fetched in parallel."""

    async def all_at_once() -> dict[_Writer, ProducerIdentity | MirrorError]:
        limit = asyncio.Semaphore(_CONCURRENT_TAKEOVERS)
        deadline = time.monotonic() + _TAKEOVER_SECONDS
        async with open_clients(target) as (client,):

            async def one(name: str | None) -> ProducerIdentity | MirrorError:
                async with limit:
                    try:
                        if name is None:
                            return await client.producers.new_producer_id(deadline=deadline)
                        return await client.producers.init_producer_id(name, deadline=deadline)
                    except MirrorError as error:
                        return error

            outcomes = await asyncio.gather(*(one(name) for name in names.values()))
            return dict(zip(names, outcomes, strict=True))

    return asyncio.run(all_at_once())


class _Claim(NamedTuple):
    """Why this run is not the only one that claims a partition."""

    why: str
    #: The other run's record if taking over from it is possible.
    other: Position | None = None


def _claimed_by_others(
    clusters: FlowClusters, opened: Mapping[TopicPartition, OpenPartition], run_id: str
) -> dict[TopicPartition, _Claim]:
    before_us: dict[TopicPartition, Position] = {}
    at_all: dict[TopicPartition, Position] = {}
    ours: set[TopicPartition] = set()
    for stored in clusters.positions.read_since(clusters.positions_at_plan):
        source = stored.position.source
        if stored.position.run_id == run_id:
            ours.add(source)
            continue
        if source in opened and (stored.position.claim or opened[source].claim) < opened[source].claim:
            # The record of a run that was taken over and resumed.
            continue
        at_all[source] = stored.position
        if source not in ours:
            before_us[source] = stored.position
    claimed = {}
    for source, partition in opened.items():
        # Records about different source partitions have no common order: in a merge both runs give the partition up.
        others = [other for other in clusters.sources_of(partition.plan.target) if other != source and other in at_all]
        if source not in ours:
            claimed[source] = _Claim("the claim record of this partition cannot be read back from the position topic.")
        elif others or (source in before_us and len(clusters.sources_of(partition.plan.target)) > 1):
            other = others[0] if others else source
            claimed[source] = _Claim(
                f"another run ({at_all[other].run_id or 'unknown'}) claimed {other}, which is also copied to "
                f"{partition.plan.target}, at the same time."
            )
        elif source in before_us:
            claimed[source] = _Claim(
                f"another run ({before_us[source].run_id or 'unknown'}) claimed this partition at the same time.",
                before_us[source],
            )
    return claimed
