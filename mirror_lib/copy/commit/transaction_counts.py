"""The ledger's counts of records of transactions, which a flow of all records continues from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.identity.targets import is_other_topic
from mirror_lib.ledger.offset_rows import TransactionCountRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import OpenPartition, PartitionResult
from mirror_lib.records.transactions import OpenTransaction, TransactionCount
from mirror_lib.topology.names import FlowId, TopicPartition

Bins = tuple[tuple[OpenPartition, ...], ...]


def with_transaction_counts(bins: Bins, flow: FlowId, ledger: Ledger) -> Bins:
    """The claimed partitions with the counts of what earlier runs have copied."""
    known = {TopicPartition(row.topic, row.partition): row for row in ledger.transaction_counts(str(flow))}
    return tuple(tuple(_with_count(each, known) for each in bin_) for bin_ in bins) if known else bins


def _with_count(opened: OpenPartition, known: Mapping[TopicPartition, TransactionCountRow]) -> OpenPartition:
    row = known.get(opened.plan.source)
    # Another copy has begun since, of another log or from an earlier offset.
    if row is None or row.copy != opened.plan.copy:
        return opened
    return replace(opened, plan=replace(opened.plan, transactions=count_of(row)))


def count_of(row: TransactionCountRow) -> TransactionCount:
    """The count in a row."""
    return TransactionCount(
        counted_to=row.counted_to,
        aborted=row.aborted,
        open=tuple(OpenTransaction(*each) for each in row.open),
        uncounted=row.uncounted,
    )


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
            yield TransactionCountRow(
                flow=str(flow),
                topic=result.source.topic,
                partition=result.source.partition,
                copy=opened[result.source].plan.copy,
                counted_to=count.counted_to,
                aborted=count.aborted,
                undecided=count.undecided,
                uncounted=count.uncounted,
                open=tuple(tuple(each) for each in count.open),
            )
