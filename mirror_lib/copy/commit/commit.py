"""Commit a round: first what the ledger has to know, then positions and offset-syncs in Kafka, then the run's account.

Gaps and the offset map come first, since they cannot be found any more once a position has passed them; a run that
dies before it stores its positions is taken over, and its successor finds the same again. So do the ledger's own
positions: a position that only Kafka has is that of another ledger, or of one that was restored. Kafka stays the source
of truth for how far a partition is copied. If it refuses a write, the ledger still records what was copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import OffsetSyncWriter
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import offset_syncs_topic
from mirror_lib.copy.claim.unknown_records import with_found_records
from mirror_lib.copy.commit.poison_gaps import gap_rows
from mirror_lib.copy.commit.transaction_counts import transaction_count_rows
from mirror_lib.identity.positions import position_row
from mirror_lib.ledger import offset_rows, rows
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.runs import OffsetRun, encode
from mirror_lib.offsets.syncs import EmissionState, flush_syncs
from mirror_lib.planning.by_transform_chain import route_record
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.lost_deletions import find_lost_deletions, note_lost_deletions
from mirror_lib.planning.model import CopyJob, OpenPartition, PartitionProblem, PartitionResult
from mirror_lib.topology.names import TopicPartition

#: Maximum number of runs in a row, some hundred kilobytes.
_RUNS_PER_ROW = 50_000


def commit_round(
    flow: FlowConfig,
    job: CopyJob,
    results: Sequence[PartitionResult],
    clusters: FlowClusters,
    ledger: Ledger,
    *,
    round_number: int,
) -> tuple[PartitionProblem, ...]:
    """Store the results of a round. Partitions whose end is not certain keep their `open` position.

    Return the partitions in which deletions may be lost.
    """
    opened = {partition.plan.source: partition for bin_ in job.bins for partition in bin_}
    positions = with_found_records(closed_positions(opened, results, job.run_id), results, clusters)
    # First: no position may pass skipped records that are not recorded anywhere.
    for gap in gap_rows(job.flow, job.run_id, results, job.settings.poison_policy):
        ledger.record_gap(gap)
    plans = {source: each.plan for source, each in opened.items()}
    late = find_lost_deletions(job.flow, results, plans, clusters, ledger)
    note_lost_deletions(job.flow, late, plans, ledger, run_id=job.run_id)
    # Nor records whose target offset is not recorded. If the run dies here, the next one finds the same again.
    ledger.append_segments(
        [row for result in results for row in segment_rows(flow, job.run_id, result.source, result.runs)]
    )
    if job.chains or any(result.routed for result in results):
        route_record(str(job.flow))(flow, job, opened, results, ledger)
    # A run that takes over counts from where this count ends.
    if counts := list(transaction_count_rows(flow.flow, opened, results)):
        claims = {source: each.claim for source, each in opened.items()}
        ledger.save_transaction_counts(counts, claims=claims)
    # Nor may Kafka have a position that the ledger does not know: it would look like the history of another ledger. If
    # Kafka refuses some, they stay open there, and the next run takes over from them.
    ledger.commit_positions([position_row(flow, position) for position in positions])
    try:
        clusters.positions.write(positions)
        if flow.emit_offset_syncs_enabled:
            _write_offset_syncs(flow, results)
    finally:
        ledger.save_partition_runs([partition_row(job.run_id, round_number, result) for result in results])
    return late


def closed_positions(
    opened: dict[TopicPartition, OpenPartition], results: Sequence[PartitionResult], run_id: str
) -> list[Position]:
    """The records that end a run, for every partition with a known end on both sides.

    In a merge all partitions that share a target have its final end, regardless of which of them wrote last.
    """
    ends: dict[TopicPartition, int] = {}
    uncertain = {result.target for result in results if not result.certain}
    for result in results:
        ends[result.target] = max(ends.get(result.target, 0), result.target_next)
    return [
        opened[result.source].plan.with_identity(
            Position(
                topic=result.source.topic,
                partition=result.source.partition,
                offset=result.source_next - 1,
                target_offset=ends[result.target],
                state=PositionState.CLOSED,
                producer_id=result.producer_id,
                epoch=result.epoch,
                run_id=run_id,
                topic_id=opened[result.source].plan.topic_id,
                leader_epoch=result.leader_epoch,
                last_record=result.last_record,
                target_record=result.target_record,
                claim=opened[result.source].claim,
            )
        )
        for result in results
        if result.target not in uncertain
    ]


def _write_offset_syncs(flow: FlowConfig, results: Sequence[PartitionResult]) -> None:
    syncs = [
        OffsetSync(result.source.topic, result.source.partition, upstream, downstream)
        for result in results
        # MM2 forgets its state at a restart, and each run is a restart.
        for upstream, downstream in flush_syncs(EmissionState(), result.runs, flow.offset_lag_max)[0]
    ]
    if not syncs:
        return
    topic = offset_syncs_topic(flow)
    with OffsetSyncWriter(Connection.from_settings(flow.clients.offset_syncs_producer), topic) as writer:
        writer.write(syncs)


def segment_rows(
    flow: FlowConfig, run_id: str, source: TopicPartition, runs: Sequence[OffsetRun]
) -> list[offset_rows.SegmentRow]:
    """The segments that a partition's run adds to the offset map; topics with many holes take several rows."""
    parts = (runs[start : start + _RUNS_PER_ROW] for start in range(0, len(runs), _RUNS_PER_ROW))
    return [
        offset_rows.SegmentRow(
            flow=str(flow.flow),
            topic=source.topic,
            partition=source.partition,
            source_first=part[0].source_first,
            source_next=part[-1].source_next,
            target_first=part[0].target_first,
            target_next=part[-1].target_next,
            records=sum(run.count for run in part),
            runs=encode(part) if len(part) > 1 else None,
            run_id=run_id,
        )
        for part in parts
    ]


def partition_row(run_id: str, round_number: int, result: PartitionResult) -> rows.PartitionRunRow:
    """A result as a ledger row."""
    return rows.PartitionRunRow(
        run_id=run_id,
        round=round_number,
        topic=result.source.topic,
        partition=result.source.partition,
        target_topic=result.target.topic,
        start_offset=result.start,
        end_offset=result.end,
        source_next=result.source_next,
        target_first=result.target_first,
        target_next=result.target_next,
        records=result.records,
        bytes=result.bytes,
        batches=result.batches,
        first_timestamp=result.first_timestamp,
        last_timestamp=result.last_timestamp,
        seconds=result.seconds,
        state="done" if result.complete else "failed",
        reason=result.error.reason if result.error else None,
        detail=str(result.error) if result.error else None,
    )
