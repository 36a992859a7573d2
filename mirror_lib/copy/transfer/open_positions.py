"""The records that claim a partition, and the transactional id of its writer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mirror_lib.cluster.topics.position_format import OmittedRange, Position, PositionState
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.planning.model import OpenPartition
from mirror_lib.topology.names import FlowId, TopicPartition

if TYPE_CHECKING:
    from mirror_lib.config.data_plane import TopicChain
    from mirror_lib.config.model import FlowConfig


def transactional_id(flow: FlowId, target: TopicPartition) -> str:
    """The transactional id of the only writer of a target partition; it only provides a producer id and an epoch."""
    return f"{_prefix(flow)}{target}"


def hole_writer_id(flow: FlowId, number: int) -> str:
    """The transactional id of the writer of a task's markers with `mirror.offsets = same` (`holes`)."""
    return f"{_prefix(flow)}holes:{number}"


def names_of_flow(flow: FlowId, names: Iterable[str]) -> list[str]:
    """The transactional ids that belong to the flow's writers."""
    return [name for name in names if name.startswith(_prefix(flow))]


def is_own_transactional_id(name: str) -> bool:
    """True if a transactional id belongs to a writer of any flow or backfill of this program."""
    flow, end, _ = name.removeprefix("mirror:").partition(":")
    return name.startswith("mirror:") and bool(end) and "->" in flow


def _prefix(flow: FlowId) -> str:
    return f"mirror:{flow}:"


def transactions_of(flow: FlowConfig, chain: TopicChain | None, target: TopicPartition, *, merged: bool) -> str | None:
    """The transactional id whose transactions hold all that is written for a source partition; None if there are none.

    Transactions are for cases without another way to exactly-once (`exactly.once.source.support=enabled`): the rows of
    an interrupted run cannot be recognized by transforming the records again, or not one partition at a time.

    Args:
        chain: the transforms of the records; None for an unchanged copy.
        merged: whether several source partitions are copied to `target`.
    """
    if not flow.transactions or not (merged or (chain and not chain.comparable)):
        return None
    if not chain or not chain.may_route:
        return transactional_id(flow.flow, target)
    # Partitions whose rows may reach the same target partition share one writer and its transaction.
    return f"{_prefix(flow.flow)}*" if chain.sets_partition else f"{_prefix(flow.flow)}*-{target.partition}"


def open_position(opened: OpenPartition, run_id: str) -> Position:
    """The record that claims a partition: the offsets up to which all is certain, and the producer that writes."""
    plan, takeover = opened.plan, opened.takeover
    # After MirrorMaker 2 the certain pair is before its position, which it must find again if it is used again.
    certain = takeover is None or takeover.source_offset == plan.start
    position = Position(
        topic=plan.source.topic,
        partition=plan.source.partition,
        offset=plan.start - 1,
        target_offset=opened.target_offset if certain else None,
        state=PositionState.OPEN,
        producer_id=opened.producer_id if opened.producer_id >= 0 else None,
        epoch=opened.epoch if opened.epoch >= 0 else None,
        run_id=run_id,
        topic_id=plan.topic_id,
        leader_epoch=plan.leader_epoch,
        last_record=plan.last_record,
        target_record=plan.target_record,
        claim=opened.claim,
        skipped=() if takeover is None else takeover.skipped,
        runs=() if takeover is None else takeover.runs,
        routes=() if takeover is None else takeover.routes,
        in_transactions=opened.transactions is not None and (takeover is None or takeover.in_transactions),
        hole_writers=tuple(sorted({*_hole_writer(opened), *(() if takeover is None else takeover.hole_writers)})),
    )
    return plan.with_identity(position)


def open_position_of(copy: PartitionCopy, run_id: str) -> Position:
    """The current position of a partition, as the record from which a restart continues."""
    opened = copy.opened
    position = Position(
        topic=copy.source.topic,
        partition=copy.source.partition,
        offset=copy.source_next - 1,
        target_offset=copy.target_next,
        state=PositionState.OPEN,
        producer_id=opened.producer_id,
        epoch=opened.epoch,
        run_id=run_id,
        topic_id=opened.plan.topic_id,
        leader_epoch=copy.leader_epoch,
        last_record=copy.last_record,
        target_record=copy.target_record,
        claim=opened.claim,
        skipped=tuple(
            OmittedRange(each.first_offset, each.next_offset, each.records, each.cause, each.quarantined)
            for each in copy.skipped_records
        ),
        runs=copy.runs,
        in_transactions=opened.transactions is not None,
        hole_writers=_hole_writer(opened),
    )
    return opened.plan.with_identity(position)


def _hole_writer(opened: OpenPartition) -> tuple[int, ...]:
    return () if opened.hole_writer is None else (opened.hole_writer.number,)
