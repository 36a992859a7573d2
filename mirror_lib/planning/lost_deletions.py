"""Tombstones that a compacted source may have removed before they were copied.

A tombstone is a record without a value. The source's cleaner removes it `delete.retention.ms` after it has cleaned it
for the first time. A later run finds neither the key nor its tombstone, and the key, copied before, stays on the target
for ever. The source does not show which keys these are, so a run can only report the possibility, and stops nothing:
later records are correct, and waiting would lose more.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.errors import DeletionsPossiblyLostError, MirrorError, Where
from mirror_lib.ledger.observed_rows import PartitionObservationRow
from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.ledger.rows import GapRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.outlooks import duration
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import PartitionPlan, PartitionProblem, PartitionResult
from mirror_lib.planning.topic_limits import read_limits
from mirror_lib.topology.names import FlowId, TopicPartition

_log = logging.getLogger(__name__)
#: Kafka's default, for a source that does not respond.
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class CopiedSpan:
    """Source offsets [first_offset, next_offset) of a partition that a run has read."""

    source: TopicPartition
    first_offset: int
    next_offset: int
    topic_id: str | None
    #: Epoch milliseconds: when the copy was last at the end of the log, None if no position has it.
    caught_up_at: int | None


def ranges_with_holes(
    results: Iterable[PartitionResult], plans: Mapping[TopicPartition, PartitionPlan]
) -> list[CopiedSpan]:
    """The spans with fewer records than offsets: without a hole, the cleaner has removed nothing.

    Transactions, and transforms that drop records, leave holes too. Backfills are ignored.
    """
    found = []
    for result in results:
        plan = plans[result.source]
        if plan.asked_at is None:
            continue
        first = min([plan.start, *(run.source_first for run in result.runs[:1])])
        held = sum(run.count for run in result.runs)
        skipped = sum(each.next_offset - each.first_offset for each in result.poison)
        if result.source_next - first > held + skipped:
            span = CopiedSpan(result.source, first, result.source_next, plan.topic_id, plan.caught_up_at)
            found.append(span)
    return found


def caught_up_at(
    source: TopicPartition,
    position: int,
    stored: int | None,
    seen: Mapping[TopicPartition, PartitionObservationRow],
    ledger_positions: Mapping[TopicPartition, PositionRow],
) -> int | None:
    """When the copy of a partition was last at the end of the source's log, in epoch milliseconds.

    A run writes no position for an idle partition, so the latest observation of it counts too.

    Args:
        position: the next offset to copy.
        stored: the value in the position.
        seen: partitions as last observed.
        ledger_positions: the ledger's copies, for positions of version 0.1.0, which lack the value.
    """
    if stored is None:
        row = ledger_positions.get(source)
        if row is not None and row.updated_at is not None and row.offset + 1 <= position:
            stored = _milliseconds(row.updated_at)
    observed = seen.get(source)
    if observed is None or not observed.position == observed.log_end == position:
        return stored
    idle_at = _milliseconds(observed.observed_at)
    return idle_at if stored is None else max(stored, idle_at)


def last_caught_up(
    ledger: Ledger, flow: FlowId, partitions: Mapping[TopicPartition, tuple[int, int | None]]
) -> dict[TopicPartition, int | None]:
    """As `caught_up_at`, for partitions with position and stored time."""
    name = str(flow)
    seen = {TopicPartition(row.topic, row.partition): row for row in ledger.observations.partitions(name)}
    rows: dict[TopicPartition, PositionRow] = {}
    if any(stored is None for _, stored in partitions.values()):
        rows = {TopicPartition(row.topic, row.partition): row for row in ledger.positions(name)}
    return {
        source: caught_up_at(source, position, stored, seen, rows) for source, (position, stored) in partitions.items()
    }


def find_lost_deletions(
    flow: FlowId,
    results: Iterable[PartitionResult],
    plans: Mapping[TopicPartition, PartitionPlan],
    clusters: FlowClusters,
    ledger: Ledger,
) -> tuple[PartitionProblem, ...]:
    """The partitions of compacted topics in which a round may have been too late for tombstones.

    Only the configs of topics with holes are requested.
    """
    now = int(datetime.now(UTC).timestamp() * 1000)
    spans = ranges_with_holes(results, plans)
    if not spans:
        return ()
    kept = _tombstones_kept(clusters.source_admin, {each.source.topic for each in spans})
    late = [each for each in spans if _is_late(kept.get(each.source.topic), each.caught_up_at, now)]
    if not late:
        return ()
    # Query the ledger only now: it has a row for each partition of the flow.
    times = last_caught_up(ledger, flow, {each.source: (each.first_offset, each.caught_up_at) for each in late})
    found = []
    for each in late:
        limit, since = kept[each.source.topic], times[each.source]
        if _is_late(limit, since, now):
            found.append(PartitionProblem(each.source, lost_deletions(flow, each, limit, since, now)))
    return tuple(found)


def _tombstones_kept(source: ClusterAdmin, topics: Iterable[str]) -> dict[str, int]:
    """`delete.retention.ms` by compacted topic."""
    topics = sorted(topics)
    try:
        limits = read_limits(source, topics)
    except MirrorError as error:
        # Positions must be stored anyway; a false alarm is better than none.
        _log.warning("delete.retention.ms of the source cannot be read, one day is assumed: %s", error)
        return dict.fromkeys(topics, _DAY_MS)
    for topic in topics:
        if topic not in limits:
            _log.warning("The configs of %s cannot be read: whether deletions were lost is unknown.", topic)
    return {topic: each.tombstones_kept_ms for topic, each in limits.items() if each.tombstones_kept_ms is not None}


def _is_late(kept: int | None, since: int | None, now: int) -> bool:
    """True if tombstones may be gone, or if the time is unknown: one in the future is that of a wrong clock."""
    return kept is not None and (since is None or not 0 <= now - since <= kept)


def lost_deletions(
    flow: FlowId, span: CopiedSpan, kept_ms: int, since_ms: int | None, now_ms: int
) -> DeletionsPossiblyLostError:
    """The error that reports it.

    Args:
        since_ms: None if it is unknown when the copy was last at the end.
    """
    topic, partition = span.source
    where = Where(flow=str(flow), topic=topic, partition=partition, offset=span.first_offset)
    return DeletionsPossiblyLostError(
        f"deletions may be lost: {_pause(since_ms, now_ms)}, the source keeps tombstones for "
        f"{duration(kept_ms / 1000)} (delete.retention.ms), and records are missing between offsets "
        f"{span.first_offset} and {span.next_offset}.",
        where=where,
        action="All remaining records of the source were copied; keys deleted in between may still exist on the "
        f"target. Check: `mirror verify --flow '{flow}' --topics '{topic}' --mode state` counts such keys. Then "
        f"decide: `mirror gaps delete-keys {where.selected}` shows them and writes their tombstones to the target, "
        f"`mirror gaps accept {where.selected}` keeps them. Or copy the topic again: delete it on the target, run the "
        f"flow, which stops with target-deleted, and `mirror gaps recopy {where.selected}`. Raise delete.retention.ms "
        "on the source, or run the flow more often.",
    )


def _pause(since_ms: int | None, now_ms: int) -> str:
    if since_ms is None or since_ms > now_ms:
        return "when the copy last reached the end of the partition is unknown"
    at = datetime.fromtimestamp(since_ms / 1000, UTC)
    later = duration((now_ms - since_ms) / 1000)
    return f"the copy reached the end of the partition at {at:%Y-%m-%dT%H:%M:%SZ} and continued {later} later"


def note_lost_deletions(
    flow: FlowId,
    found: Sequence[PartitionProblem],
    plans: Mapping[TopicPartition, PartitionPlan],
    ledger: Ledger,
    *,
    run_id: str,
) -> None:
    """Ensure that each of them has an open row in the ledger.

    Its range is empty, since no offset is known to be lost: the row must not excuse any other loss. A partition keeps
    its first row until an operator decides.
    """
    if not found:
        return
    reason = DeletionsPossiblyLostError.reason
    known = {
        TopicPartition(row.topic, row.partition): row.first_offset
        for row in ledger.open_gaps(str(flow))
        if row.cause == reason
    }
    now = datetime.now(UTC)
    for problem in found:
        offset = known.get(problem.source, problem.error.where.offset or 0)
        ledger.record_gap(
            GapRow(
                id=str(uuid.uuid4()),
                flow=str(flow),
                topic=problem.source.topic,
                partition=problem.source.partition,
                cause=reason,
                first_offset=offset,
                next_offset=offset,
                last_time=now,
                topic_id=plans[problem.source].topic_id,
                detail=problem.error.what,
                run_id=run_id,
                found_at=now,
            )
        )


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
