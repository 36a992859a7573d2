"""What the ledger stores of a round about records that transforms have sent to other partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mirror_lib.config.model import FlowConfig
from mirror_lib.features.transforms.tables import RoutedRangeRow, RoutedRanges
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import CopyJob, OpenPartition, PartitionResult, RoutedRecords
from mirror_lib.topology.names import TopicPartition


def record_routes(
    flow: FlowConfig,
    job: CopyJob,
    opened: Mapping[TopicPartition, OpenPartition],
    results: Sequence[PartitionResult],
    ledger: Ledger,
) -> None:
    """Store where a round has written the records that transforms route.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    if rows := [row for result in results for row in routed_rows(flow, job, opened[result.source], result)]:
        resumed = [source for source, each in opened.items() if each.takeover is not None]
        RoutedRanges(ledger).append(rows, resumed=resumed)


def routed_rows(flow: FlowConfig, job: CopyJob, opened: OpenPartition, result: PartitionResult) -> list[RoutedRangeRow]:
    """Target partitions to which a partition's run has written, if its transforms choose them.

    If the end is not certain, nothing is recorded: the next run finds all of it again, and records it.
    """
    # An earlier attempt may have committed transactions, and the last one started after them.
    first = min(result.start, opened.plan.start)
    own_first = min([result.target_first, *(run.target_first for run in result.runs[:1])])
    chain = job.chains.get(result.source.topic)
    routes = bool(result.routed) or (chain is not None and chain.may_route)
    if not routes or not result.certain or result.source_next <= first:
        return []
    routed = sum(each.records for each in result.routed)
    own = RoutedRecords(result.target, own_first, result.target_next, result.records + result.recovered - routed)
    return [
        RoutedRangeRow(
            flow=str(flow.flow),
            target_topic=each.target.topic,
            target_partition=each.target.partition,
            topic=result.source.topic,
            partition=result.source.partition,
            own=each is own,
            source_first=first,
            source_next=result.source_next,
            target_first=each.target_first,
            target_next=max(each.target_next, each.target_first),
            records=each.records,
            run_id=job.run_id,
        )
        for each in (own, *result.routed)
    ]
