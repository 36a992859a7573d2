"""Show and set positions: how an operator continues a stalled partition that no rule can decide.

If a target has other records than the source, or fewer than it has acknowledged, or after an interrupted merge, the
replicator cannot know what is correct. The operator sets where copying continues, at the end of the target, whose
records never change. The ledger records each change with who made it and why.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.topics.position_format import ClusterPair, Position, PositionState, next_copy
from mirror_lib.config.model import Fencing, FirstStart, FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.claim.void_syncs import rewind_syncs, rewind_syncs_of_other_logs
from mirror_lib.copy.commit.commit import segment_rows
from mirror_lib.copy.commit.decided_positions import store_decided
from mirror_lib.copy.commit.poison_gaps import omission_rows
from mirror_lib.copy.gaps.gaps import end_of_history
from mirror_lib.copy.takeover.fencing import fence_name
from mirror_lib.copy.transfer.open_positions import transactional_id
from mirror_lib.errors import (
    POSITION_REASONS,
    ConfigurationError,
    MirrorError,
    TopicMissingError,
    Where,
)
from mirror_lib.identity.histories import LedgerState
from mirror_lib.identity.ledger_positions import LedgerPositions, Past
from mirror_lib.identity.targets import TargetPartition, copied_to, is_other_topic, target_change, target_cluster_change
from mirror_lib.ledger.rows import POSITION_SET, GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.backfills import backfill_id
from mirror_lib.planning.facts import with_flow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class PositionChange:
    """The effect of setting one position; it can be printed before it is applied."""

    source: TopicPartition
    target: TopicPartition
    #: The present position, None if nothing is known to have been copied.
    before: Position | None
    #: The position to write; None to delete it, so that the next run is the partition's first.
    after: Position | None
    #: The source offset up to which records were copied: by the position or, if that is lost, by the ledger.
    copied_to: int | None = None
    #: Several source partitions share the target.
    merged: bool = False
    #: The target no longer has the copied records: map and offset-syncs are about other records.
    map_is_void: bool = False
    #: The target offset of the next copied record.
    target_end: int = 0
    #: Why it cannot be applied.
    error: MirrorError | None = None

    @property
    def skipped_range(self) -> tuple[int, int]:
        """Source offsets [first, next) that are skipped; empty if the position decreases or is deleted."""
        if self.copied_to is None or self.after is None:
            return 0, 0
        first, following = self.copied_to, self.after.offset + 1
        return (first, following) if following > first else (first, first)

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.source}: {self.error.what}"
        if self.after is None:
            return f"{self.source}: the position is deleted; the next run is its first (mirror.first.start)"
        first, following = self.skipped_range
        replaced = "" if self.before is None else f" instead of {self.before.offset + 1}"
        what = f"{self.source}: copying continues at source offset {self.after.offset + 1}{replaced}"
        where = f"its target is {self.target} offset {self.after.target_offset}"
        if following > first:
            return f"{what}; offsets {first} to {following - 1} are skipped; {where}"
        if self.before is not None and self.after.offset < self.before.offset:
            return f"{what}; records copied since then are copied again; {where}"
        return f"{what}; {where}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "position": None if self.before is None else self.before.offset + 1,
            "new_position": None if self.after is None else self.after.offset + 1,
            "target_offset": None if self.after is None else self.after.target_offset,
            "error": None if self.error is None else self.error.attributes(),
        }


def plan_changes(
    flow: FlowConfig,
    clusters: FlowClusters,
    topic: str,
    partitions: Collection[int],
    start: FirstStart | None,
    *,
    in_ledger: LedgerPositions | None = None,
    run_id: str,
) -> tuple[PositionChange, ...]:
    """The effect of setting the positions of a source topic; change nothing.

    Args:
        topic: source topic; the flow must replicate it.
        partitions: partitions of the topic; all if it is empty.
        start: where copying continues; None to delete the positions.
        in_ledger: what the ledger has.
        run_id: the run id in the new positions.

    Raises:
        ConfigurationError: the flow does not replicate the topic, the source does not have it, or it has no such
            partition.
        MirrorError: a cluster does not respond.
    """
    topology = flow_topology(flow)
    topology.refuse_unselected(topic)
    found = clusters.source_admin.describe_topics([topic])
    if isinstance(found.errors.get(topic), TopicMissingError):
        raise ConfigurationError(
            f"cluster {flow.flow.source} has no topic {topic!r}.",
            where=Where(flow=str(flow.flow)),
            action="`mirror topics plan` lists the topics of the flow.",
        )
    for refused in found.errors.values():
        raise refused
    described = found[topic]
    known = {each.partition for each in described.partitions}
    if unknown := set(partitions) - known:
        raise ConfigurationError(
            f"topic {topic} has no partition {min(unknown)}.", action=f"Its partitions are 0 to {max(known)}."
        )
    remote = topology.remote_topic(topic)
    sources = [TopicPartition(topic, number) for number in sorted(partitions or known)]
    targets = {source: TopicPartition(remote, source.partition) for source in sources}
    snapshot = clusters.positions.read_all()
    others = {each.topic for each in snapshot.positions if each.topic != topic}
    merged = topology.rename.merge and any(topology.remote_topic(other) == remote for other in others)
    ends = clusters.target_admin.list_offsets(targets.values(), OffsetSpec.LATEST)
    there = clusters.target_admin.describe_topics([remote]).get(remote)
    starts = {} if start is None else _starts(clusters, sources, start)
    changes = []
    for source in sources:
        stored = snapshot.positions.get(source)
        before, end = None if stored is None else stored.position, ends[targets[source]]
        held = None if isinstance(end.error, TopicMissingError) else end.offset
        if held is None:
            # The next run creates it.
            end = OffsetFact(offset=0)
        now = TargetPartition(remote, there.topic_id if there is not None else None, held)
        void = (
            end.error is None
            and before is not None
            and (_is_void(before, now, clusters.ids()) or is_other_topic(before.topic_id, described.topic_id))
        )
        row = None if in_ledger is None else in_ledger.rows.get(source)
        last = before or row
        change = PositionChange(
            source,
            targets[source],
            before,
            None,
            None if last is None else last.offset + 1,
            merged=merged,
            map_is_void=void,
            target_end=end.offset,
        )
        if start is not None:
            begin = starts[source]
            error = begin.error or end.error
            if error is not None:
                change = replace(change, error=with_flow(flow, error, source))
            else:
                claim = snapshot.claims.get(source, 0) + 1
                after = position_at(
                    source,
                    begin.offset,
                    end.offset,
                    before=change.before,
                    topic_id=described.topic_id,
                    claim=claim,
                    run_id=run_id,
                )
                after = replace(
                    after,
                    target_topic=remote,
                    target_topic_id=there.topic_id if there is not None else None,
                    clusters=clusters.ids(),
                    first_partitions=None if change.before is None else change.before.first_partitions,
                    # Setting a position does not copy the deletions that were missed while nothing was copied.
                    caught_up_at=None if change.before is None else change.before.caught_up_at,
                )
                change = replace(change, after=after)
        changes.append(change)
    return tuple(changes)


def position_at(
    source: TopicPartition,
    start: int,
    target_end: int,
    *,
    before: Position | None,
    topic_id: str | None,
    claim: int,
    run_id: str,
) -> Position:
    """The position with which copying continues at `start`, at the target's end.

    After an interrupted run it stays open with that run's writer, which may still be alive: the next run fences it.
    """
    position = Position(
        source.topic,
        source.partition,
        start - 1,
        target_offset=target_end,
        state=PositionState.CLOSED,
        run_id=run_id,
        topic_id=topic_id,
        claim=claim,
    )
    if before is None or before.state is not PositionState.OPEN:
        return position
    return replace(position, state=PositionState.OPEN, producer_id=before.producer_id, epoch=before.epoch)


def _starts(
    clusters: FlowClusters, sources: Sequence[TopicPartition], start: FirstStart
) -> Mapping[TopicPartition, OffsetFact]:
    admin = clusters.source_admin
    latest = OffsetSpec.LAST_STABLE if clusters.read_committed else OffsetSpec.LATEST
    if start.reset is not None:
        return admin.list_offsets(sources, OffsetSpec.EARLIEST if start.reset == "earliest" else latest)
    first, last = admin.list_offsets(sources, OffsetSpec.EARLIEST), admin.list_offsets(sources, latest)
    if start.timestamp_ms is not None:
        found = admin.offsets_at(dict.fromkeys(sources, start.timestamp_ms))
        # All records are older: continue with the next new one.
        return {source: each if each.error or each.offset >= 0 else last[source] for source, each in found.items()}
    assert start.offset is not None
    return {source: _within(source, start.offset, first[source], last[source]) for source in sources}


def _within(source: TopicPartition, offset: int, first: OffsetFact, last: OffsetFact) -> OffsetFact:
    error = first.error or last.error
    if error is None and not first.offset <= offset <= last.offset:
        error = ConfigurationError(
            f"{source} has offsets {first.offset} to {last.offset - 1}, but not {offset}.",
            where=Where(topic=source.topic, partition=source.partition, offset=offset),
            action=f"Use an offset from {first.offset} to {last.offset}.",
        )
    return OffsetFact(offset=offset) if error is None else OffsetFact(offset=-1, error=error)


def apply_changes(
    flow: FlowConfig,
    clusters: FlowClusters,
    ledger: Ledger,
    changes: Iterable[PositionChange],
    *,
    by: str,
    note: str | None = None,
    run_id: str,
) -> None:
    """Apply the changes that have no error, and record in the ledger who made them.

    No run may be copying: take the run lock first.

    Raises:
        MirrorError: the position topic or the ledger cannot be written.
    """
    known = LedgerPositions.read(ledger, flow.flow)
    wanted = [_in_its_copy(flow, _fence(flow, clusters, each), known, run_id) for each in changes if each.error is None]
    former = {each.source: each.before for each in wanted if each.before is not None}
    written = [change.after for change in wanted if change.after is not None]
    rewind_syncs(flow, {change.source: change.target_end for change in wanted if change.map_is_void})
    # Once a position is stored, nothing shows that the copy has just begun.
    rewind_syncs_of_other_logs(flow, {each.source: each.target_end for each in wanted if each.before is None})
    forgotten = [change.source for change in wanted if change.after is None]
    store_decided(flow, clusters.positions, ledger, written, former, forgotten=forgotten, run_id=run_id)
    now = datetime.now(UTC)
    waiting: dict[TopicPartition, list[GapRow]] = {}
    for gap in ledger.open_gaps(str(flow.flow)):
        if gap.cause in POSITION_REASONS:
            waiting.setdefault(TopicPartition(gap.topic, gap.partition), []).append(gap)
    for change in wanted:
        if change.before is not None:
            keep_account(flow, ledger, change.before, by=by)
            if change.map_is_void:
                ledger.replace_segments(str(flow.flow), *change.source, [])
            elif (end := end_of_history(waiting.get(change.source, ()))) is not None:
                ledger.cut_segments(str(flow.flow), *change.source, end)
        noted = _gap_row(flow, change, now, by=by, note=note, run_id=run_id)
        ledger.record_gap(noted)
        for gap in waiting.get(change.source, ()):
            ledger.decide_gap(gap.id, GapState(noted.state), by=by, note=note or "by `mirror position set`")


def _fence(flow: FlowConfig, clusters: FlowClusters, change: PositionChange) -> PositionChange:
    """Fence now the writers that no take-over would fence: of a merge, and of a backfill into the flow's topic.

    In a merge a position cannot be taken over and is therefore closed as well. A backfill's writers have other names,
    which a take-over by the flow does not know.
    """
    before = change.before
    if change.after is None or before is None or before.state is not PositionState.OPEN:
        return change
    names = [transactional_id(flow.flow, change.target)] if change.merged else []
    if before.backfill is not None:
        names.append(transactional_id(backfill_id(flow.flow, before.backfill), change.target))
    if not names:
        return change

    async def fence() -> None:
        async with open_clients(clusters.target_data) as (client,):
            retry_seconds = flow.copy_settings.retry_max_seconds
            where = Where(flow=str(flow.flow), cluster=client.cluster)
            for name in names:
                await fence_name(client, name, [change.target], retry_seconds=retry_seconds, where=where)

    if flow.fencing is Fencing.TRANSACTIONAL:
        asyncio.run(fence())
    end = clusters.target_admin.list_offsets([change.target], OffsetSpec.LATEST)[change.target]
    if end.error is not None:
        raise with_flow(flow, end.error, change.source)
    after = replace(change.after, target_offset=end.offset)
    if change.merged:
        after = replace(after, state=PositionState.CLOSED, producer_id=None, epoch=None)
    return replace(change, after=after)


def _in_its_copy(flow: FlowConfig, change: PositionChange, known: LedgerPositions, run_id: str) -> PositionChange:
    """The change with the copy that it continues.

    It is another one if the position goes back, since an offset would then mean two records, and on another target, or
    one that was restored to an older state.
    """
    before, after = change.before, change.after
    if after is None:
        return change
    past = Past.of(before, known, change.source)
    goes_back = before is None or after.offset < before.offset
    begins = goes_back or change.map_is_void or past.history.state is LedgerState.AHEAD
    is_elsewhere = change.target_end == 0 or (
        before is not None and before.target_topic not in (None, change.target.topic)
    )
    another = next_copy(None if is_elsewhere else past.copy, run_id, same_offsets=flow.copy_settings.same_offsets)
    return replace(change, after=replace(after, copy=another if begins else past.copy))


def _is_void(before: Position, now: TargetPartition, clusters: ClusterPair | None) -> bool:
    then = copied_to(before)
    if then is None:
        return False
    return (target_cluster_change(then.clusters, clusters) or target_change(then, now)) is not None


def keep_account(flow: FlowConfig, ledger: Ledger, before: Position, *, by: str) -> None:
    """Record an interrupted run's work that only its position has: its runs, and the ranges that it skipped."""
    ledger.append_segments(segment_rows(flow, before.run_id or "", before.source, before.runs))
    for row in omission_rows(flow.flow, before.source, before.skipped, run_id=before.run_id or "", by=by):
        ledger.record_gap(row)


def _gap_row(
    flow: FlowConfig, change: PositionChange, now: datetime, *, by: str, note: str | None, run_id: str
) -> GapRow:
    first, following = change.skipped_range
    return GapRow(
        id=str(uuid.uuid4()),
        flow=str(flow.flow),
        topic=change.source.topic,
        partition=change.source.partition,
        cause=POSITION_SET,
        first_offset=first,
        next_offset=following,
        topic_id=None if change.after is None else change.after.topic_id,
        detail=str(change),
        run_id=run_id,
        found_at=now,
        state=(GapState.ACCEPTED if following > first else GapState.RECOPIED).value,
        decided_by=by,
        decided_at=now,
        note=note,
    )
