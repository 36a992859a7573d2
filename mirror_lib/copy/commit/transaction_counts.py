"""The ledger's counts of records of transactions, which a flow of all records continues from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.identity.targets import is_other_topic
from mirror_lib.ledger.offset_rows import KnownPosition, TransactionCountRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.aborted_records import count_of, count_row
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import OpenPartition, PartitionPlan, PartitionResult, RunPlan
from mirror_lib.records.transactions import TransactionCount
from mirror_lib.topology.names import FlowId, TopicPartition


def with_transaction_counts(plan: RunPlan, clusters: FlowClusters, ledger: Ledger) -> RunPlan:
    """The plan with the counts of what earlier runs have copied.

    Call it before the partitions are claimed: the ledger's position is that of the claim afterwards. Where a run may
    have copied something that no row counts, a row is stored, since this run may be interrupted as well.
    """
    counts = {TopicPartition(row.topic, row.partition): row for row in ledger.transaction_counts(str(plan.flow))}
    counted = {
        each.source: count_of(row)
        for each in plan.partitions
        # Another copy has begun since, of another log or from an earlier offset.
        if (row := counts.get(each.source)) is not None and row.copy == each.copy
    }
    snapshot = clusters.positions_at_plan
    if continued := [e for e in plan.partitions if e.source not in counted and e.source in snapshot.positions]:
        known = ledger.known_positions(str(plan.flow))
        begun = {
            each: TransactionCount(counted_to=position.offset + 1)
            for each in continued
            if (position := known.get(each.source)) is not None and _may_have_copied_more(each, position)
        }
        if begun:
            claims = {each.source: snapshot.claims.get(each.source, 0) + 1 for each in begun}
            rows = [count_row(plan.flow, each.source, each.copy, count) for each, count in begun.items()]
            ledger.save_transaction_counts(rows, claims=claims)
            counted |= {each.source: count for each, count in begun.items()}
    if not counted:
        return plan
    return replace(
        plan, bins=tuple(tuple(replace(e, transactions=counted.get(e.source)) for e in bin_) for bin_ in plan.bins)
    )


def _may_have_copied_more(plan: PartitionPlan, known: KnownPosition) -> bool:
    """True if a run that was interrupted may have copied records after the ledger's position of the same copy."""
    behind = known.offset + 1 < plan.start
    return known.copy == plan.copy and (behind or (known.state == PositionState.OPEN and known.offset < plan.start))


def counts_after_decisions(
    known: Iterable[TransactionCountRow], decided: Iterable[Position], former: Mapping[TopicPartition, Position]
) -> Iterator[TransactionCountRow]:
    """Rows of partitions whose copy continues elsewhere: records on the target stay there, also those of a former copy.

    Args:
        known: the flow's rows.
        decided: the new positions.
        former: those until now.
    """
    rows = {TopicPartition(row.topic, row.partition): row for row in known}
    for after in decided:
        row, before = rows.get(after.source), former.get(after.source)
        if row is None or before is None or not _keeps_records(before, after):
            continue
        if (after.copy, after.offset + 1) != (row.copy, row.counted_to):
            # Whether the open transactions end is not read there.
            uncounted = row.uncounted + row.undecided
            row = replace(row, counted_to=after.offset + 1, undecided=0, open=(), uncounted=uncounted)
        yield replace(row, copy=after.copy, updated_at=None)


def _keeps_records(before: Position, after: Position) -> bool:
    """True if the target log of a decision still has the records that were copied before it."""
    if before.target_offset is None or after.target_offset is None or after.target_offset < before.target_offset:
        return False
    return before.target_topic == after.target_topic and not is_other_topic(
        before.target_topic_id, after.target_topic_id
    )


def transaction_count_rows(
    flow: FlowId, opened: Mapping[TopicPartition, OpenPartition], results: Sequence[PartitionResult]
) -> Iterable[TransactionCountRow]:
    """The rows after a round, for partitions that have records of transactions, or had some."""
    uncertain = {result.target for result in results if not result.certain}
    for result in results:
        count = result.transactions
        # An uncertain end is found by the next run, which counts from its start: no position is stored either.
        if count is not None and result.target not in uncertain:
            yield count_row(flow, result.source, opened[result.source].plan.copy, count)
