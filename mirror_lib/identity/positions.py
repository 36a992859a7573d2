"""Positions of partitions: from the position topic on the target, and as rows of the ledger."""

from __future__ import annotations

from datetime import datetime

from mirror_lib.cluster import Connection
from mirror_lib.cluster.topics import Position, PositionState, PositionStore
from mirror_lib.config import FlowConfig
from mirror_lib.ledger import PositionRow
from mirror_lib.topology import TopicPartition

#: Maximum wait of a command for a cluster whose response is optional.
PATIENCE_SECONDS = 5.0


def stored_positions(flow: FlowConfig, *, patient: bool = True) -> dict[TopicPartition, Position]:
    """The position of every source partition of a flow; empty if there is no position topic.

    Args:
        flow: the flow.
        patient: wait for `admin.timeout.ms`; else a few seconds, for commands that must work while the target is lost.

    Raises:
        MirrorError: the position topic cannot be read in time.
    """
    connection = Connection.from_settings(flow.clients.target_internal)
    seconds = flow.admin_timeout_ms / 1000 if patient else PATIENCE_SECONDS
    with PositionStore(connection, flow.offset_storage_topic, flow.source_alias, timeout=seconds) as store:
        positions = store.read_all().positions
    return {source: stored.position for source, stored in positions.items()}


def position_row(flow: FlowConfig, position: Position, *, stored_at: datetime | None = None) -> PositionRow:
    """A position as a ledger row.

    Args:
        flow: the flow.
        position: the position.
        stored_at: when its last commit was stored, if that is not now: deletions may be pending since.
    """
    return PositionRow(
        flow=str(flow.flow),
        topic=position.topic,
        partition=position.partition,
        offset=position.offset,
        target_offset=position.target_offset,
        state=position.state.value if position.state else PositionState.OPEN.value,
        producer_id=position.producer_id,
        epoch=position.epoch,
        run_id=position.run_id,
        topic_id=position.topic_id,
        claim=position.claim,
        copy=position.copy,
        updated_at=stored_at,
    )
