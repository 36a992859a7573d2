"""The ledger's counts of records of transactions, which a flow of all records continues from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mirror_lib.cluster.batches import OpenTransaction, TransactionCount
from mirror_lib.ledger import Ledger, TransactionCountRow
from mirror_lib.relay.model import OpenPartition, PartitionResult
from mirror_lib.topology import FlowId, TopicPartition

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
