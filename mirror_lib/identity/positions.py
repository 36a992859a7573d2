"""Positions of partitions: from the position topic on the target, and as rows of the ledger."""

from __future__ import annotations

import time
from datetime import datetime

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.leader_wait import LeaderWait
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionSnapshot, PositionStore
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.topology.names import TopicPartition

#: Maximum wait of a command for a cluster whose response is optional.
PATIENCE_SECONDS = 5.0


def stored_positions(flow: FlowConfig) -> dict[TopicPartition, Position]:
    """The position of every source partition of a flow; empty if there is no position topic.

    Raises:
        MirrorError: the position topic cannot be read in time.
    """
    return positions_in(position_snapshot(flow))


def position_snapshot(flow: FlowConfig, *, patient: bool = True) -> PositionSnapshot:
    """The content of a flow's position topic; empty if there is none.

    Args:
        flow: the flow.
        patient: wait for `admin.timeout.ms`; else a few seconds, for commands that must work while the target is lost.

    Raises:
        MirrorError: the position topic cannot be read in time.
    """
    with _store(flow, flow.admin_timeout_ms / 1000 if patient else PATIENCE_SECONDS) as store:
        return store.read_all()


def _store(flow: FlowConfig, seconds: float) -> PositionStore:
    connection = Connection.from_settings(flow.clients.target_internal)
    return PositionStore(connection, flow.offset_storage_topic, flow.source_alias, timeout=seconds)


def positions_in(snapshot: PositionSnapshot) -> dict[TopicPartition, Position]:
    """The position of every source partition that has one."""
    return {source: stored.position for source, stored in snapshot.positions.items()}


class AvailablePositions:
    """The positions of a flow for readers that can do without some: a partition without a leader hides only its own."""

    def __init__(self, flow: FlowConfig, leader_wait: LeaderWait) -> None:
        self._flow, self._leader_wait = flow, leader_wait
        self._store: PositionStore | None = None
        self._snapshot = PositionSnapshot()

    def read(self) -> PositionSnapshot:
        """Read as `position_snapshot`, without those that have had no leader for some seconds.

        Raises:
            MirrorError: the position topic cannot be read in time.
        """
        seconds = self._flow.admin_timeout_ms / 1000
        began = time.monotonic()
        with _store(self._flow, seconds) as store:
            self._store, self._snapshot = store, store.read_led(min(self._leader_wait.seconds, seconds / 2))
        if self._snapshot.unread is not None:
            self._leader_wait.note(began)
        return self._snapshot

    def why_unknown(self, source: TopicPartition) -> MirrorError | None:
        """The error of a partition whose position was not read."""
        return None if self._store is None else self._store.why_unknown(self._snapshot, source)


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
