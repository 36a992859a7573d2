"""Partitions without a position that the ledger says were copied: the position topic was lost, or is another one.

Kafka is the source of truth for how far a partition is copied, so nothing is copied from the ledger's position without
a decision. Without this rule such a partition would begin anew: its records would be appended a second time
(`mirror.target.existing=append`), or be passed over (`mirror.first.start=latest`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from mirror_lib.config import FlowConfig
from mirror_lib.errors import PositionLostError, Where
from mirror_lib.ledger import Ledger, PositionRow
from mirror_lib.relay.model import PartitionFacts, PartitionProblem
from mirror_lib.topology import TopicPartition


def find_lost_positions(
    flow: FlowConfig, facts: Iterable[PartitionFacts], ledger: Ledger | None, reset: Container[TopicPartition]
) -> tuple[PartitionProblem, ...]:
    """Return the partitions without a position of which the ledger has one with copied records.

    Args:
        reset: partitions whose position was deleted on purpose: their next run is a first start.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    without = [each for each in facts if each.position is None and not each.stopped and each.source not in reset]
    if not without or ledger is None:
        return ()
    rows = {TopicPartition(row.topic, row.partition): row for row in ledger.positions(str(flow.flow))}
    known = ((fact, rows.get(fact.source)) for fact in without)
    return tuple(_problem(flow, fact, row) for fact, row in known if row is not None and row.offset >= 0)


def _problem(flow: FlowConfig, fact: PartitionFacts, row: PositionRow) -> PartitionProblem:
    where = Where(flow=str(flow.flow), topic=fact.source.topic, partition=fact.source.partition)
    stored = "" if row.updated_at is None else f" on {row.updated_at:%Y-%m-%d at %H:%M}Z"
    error = PositionLostError(
        f"{flow.offset_storage_topic} has no position of it, but the ledger has that of run {row.run_id}{stored}: "
        f"copied up to source offset {row.offset}. The position topic was deleted or restored, or offset.storage.topic "
        "names another one.",
        where=where,
        action="Correct offset.storage.topic, or restore the topic. If that is impossible: "
        f"{where.position_set(row.offset + 1)} continues where the ledger says that the copy ended; compare with "
        "`mirror verify` afterwards.",
    )
    return PartitionProblem(fact.source, error)
