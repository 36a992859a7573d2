"""A backfill into the topics of the flow itself: how the flow and the backfill write one after the other.

The flow knows the target offset of its next batch, so it would report a backfill's records as unexpected records. While
a backfill may be writing, the flow's position is therefore `open` and names it (`Position.backfill`): the flow then
refuses the partition instead of comparing. At the end the flow's position is closed again, at the same source offset
and at the target's new end. The backfill holds the flow's run lock all the time, so no run of the flow finds a mark.

The records of a backfill are not in the flow's offset map: source offsets would decrease there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import NOTHING_COPIED, Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionSnapshot, PositionStore, StoredPosition
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.commit.decided_positions import store_decided
from mirror_lib.copy.run_lock import RunLease
from mirror_lib.errors import (
    DirtyStartError,
    MirrorError,
    RunLockedError,
    TargetDeletedError,
    TargetDivergedError,
    TopicMissingError,
    Where,
)
from mirror_lib.features.backfill.model import Backfill, BackfillRange
from mirror_lib.features.backfill.states import copy_anew
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.backfills import again, let_flow_continue
from mirror_lib.planning.facts import with_flow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import PartitionPlan
from mirror_lib.topology.names import TopicPartition


class LivePositions:
    """A context that marks and closes the positions of the flow itself, for a backfill into its topics."""

    def __init__(self, flow: FlowConfig, backfill: Backfill, ledger: Ledger, lease: RunLease, *, run_id: str) -> None:
        """Args:
        flow: the flow itself.
        lease: of the flow's own run lock.
        """
        self._flow = flow
        self._backfill = backfill
        self._ledger = ledger
        self._lease = lease
        self._run_id = run_id
        connection = Connection.from_settings(flow.clients.target_internal)
        topic, source = flow.offset_storage_topic, flow.source_alias
        self._live = PositionStore(connection, topic, source)
        self._own = PositionStore(connection, topic, source, connector=backfill.connector)
        self._snapshot = PositionSnapshot()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._live)
        self._stack.enter_context(self._own)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def prepare(self, clusters: FlowClusters, ranges: Sequence[BackfillRange]) -> dict[TopicPartition, MirrorError]:
        """Let the backfill start after what the flow has written meanwhile; return the errors of excluded partitions.

        Args:
            clusters: has the newest snapshot of the backfill's positions, which is changed.
        """
        self._snapshot = self._live.read_all()
        ends = clusters.target_admin.list_offsets([each.target for each in ranges], OffsetSpec.LATEST)
        own = dict(clusters.positions_at_plan.positions)
        refused: dict[TopicPartition, MirrorError] = {}
        for each in ranges:
            end = ends[each.target]
            if end.error is not None:
                refused[each.source] = self._without_end(clusters, each, end.error)
                continue
            stored = own.get(each.source)
            if stored is not None and stored.position.state is PositionState.OPEN:
                error = self._still_ours(each)
            else:
                error = self._free(each, end.offset, stored.position if stored else None)
            if error is not None:
                refused[each.source] = error
            elif stored is not None and stored.position.state is PositionState.CLOSED:
                own[each.source] = StoredPosition(replace(stored.position, target_offset=end.offset), stored.record)
        clusters.positions_at_plan = replace(clusters.positions_at_plan, positions=own)
        return refused

    def _without_end(self, clusters: FlowClusters, each: BackfillRange, error: MirrorError) -> MirrorError:
        live = self._position(each.source)
        if not isinstance(error, TopicMissingError) or live is None or live.target_offset is None:
            return with_flow(clusters.flow, error, each.source)
        return TargetDeletedError(
            f"{each.target.topic} was deleted on the target: it contained copied records up to offset "
            f"{live.target_offset}.",
            where=self._where(each),
            action=f"Run the flow: {self._run_flow}. It reports how to continue; `mirror gaps recopy` then copies the "
            "range too, and this backfill is no longer needed.",
        )

    def marked_at(self, source: TopicPartition) -> int | None:
        """The next source offset of the flow if it waits for this backfill; else None."""
        live = self._position(source)
        return live.offset + 1 if live is not None and self._is_marked(live) else None

    @property
    def _run_flow(self) -> str:
        return f"`mirror run --flow '{self._flow.flow}'`"

    @property
    def _again(self) -> str:
        return again(self._flow.flow, self._backfill.name)

    def _still_ours(self, each: BackfillRange) -> MirrorError | None:
        """Return an error if the flow has not waited for the interrupted run, which can then not be taken over."""
        live = self._position(each.source)
        if live is not None and self._is_marked(live):
            return None
        return TargetDivergedError(
            f"a run of this backfill into {each.target} was interrupted, and an operator has let the flow continue "
            "since: the last copied offset of the backfill is unknown.",
            where=self._where(each),
            action=f"Copy the range into another topic: {copy_anew(self._backfill, each.source.topic)}.",
        )

    def _free(self, each: BackfillRange, end: int, own: Position | None) -> MirrorError | None:
        """Return an error if another producer may be writing, or if the target's end is not the expected one."""
        live = self._position(each.source)
        anew = copy_anew(self._backfill, each.source.topic)
        if live is not None and live.target_offset is None and live.offset != NOTHING_COPIED:
            return DirtyStartError(
                f"MirrorMaker 2 copied to {each.target} last, and its position does not contain the target offset of "
                "the last copied record.",
                where=self._where(each),
                action=f"Run the flow when the source has new records ({self._run_flow}), then repeat: {self._again}. "
                f"Or copy the range into another topic now: {anew}.",
            )
        if live is None or live.target_offset is None:
            return DirtyStartError(
                f"flow {self._flow.flow} has not copied to {each.target} yet.",
                where=self._where(each),
                action=f"Run the flow first ({self._run_flow}), then repeat: {self._again}. Or copy the range into "
                f"another topic: {anew}.",
            )
        if live.backfill is not None and live.state is PositionState.OPEN and not self._is_marked(live):
            return DirtyStartError(
                f"backfill {live.backfill} into {each.target} is not finished.",
                where=self._where(each),
                action=f"Finish it first: {again(self._flow.flow, live.backfill)}. Then repeat: {self._again}.",
            )
        expected = live.target_offset
        if self._is_marked(live):
            # A run of this backfill ended after it stored its own last position and before the flow's.
            expected = max(expected, (own.target_offset if own else None) or 0)
        elif live.state is not PositionState.CLOSED:
            expected = -1
        if expected == end:
            return None
        if expected < 0:
            return DirtyStartError(
                f"the last run of flow {self._flow.flow} to {each.target} was interrupted.",
                where=self._where(each),
                action=f"Run the flow, which takes over: {self._run_flow}. Then repeat: {self._again}.",
            )
        # A flow without new records does not check for unexpected records.
        resume = let_flow_continue(self._flow.flow, each.source, live.offset + 1)
        return DirtyStartError(
            f"log end offset of {each.target} is {end}, expected {expected} as copied by flow "
            f"{self._flow.flow}: another producer wrote to it, or its records were deleted.",
            where=self._where(each),
            action=f"Find the cause. To continue after the end: {resume} Then repeat: {self._again}.",
        )

    def mark(self, partitions: Iterable[PartitionPlan]) -> None:
        """Mark the flow's positions: this backfill writes from now on.

        Raises:
            RunLockedError: the flow's lock was lost, or a run of the flow has claimed a partition nevertheless.
            MirrorError: the position topic cannot be written.
        """
        marks = []
        for partition in partitions:
            live = self._position(partition.source)
            assert live is not None
            claim = self._snapshot.claims.get(partition.source, 0) + 1
            marks.append(
                replace(live, state=PositionState.OPEN, backfill=self._backfill.name, run_id=self._run_id, claim=claim)
            )
        if not marks:
            return
        self._lease.check()
        self._live.write(marks)
        claims = {mark.source: mark.claim or 0 for mark in marks}
        for stored in self._live.read_since(self._snapshot):
            other = stored.position
            claimed = claims.get(other.source)
            # Only a run that has lost its lock does this; what it wrote with an older claim does not count.
            if claimed is not None and other.run_id != self._run_id and (other.claim or claimed) >= claimed:
                raise RunLockedError(
                    f"run {other.run_id or 'unknown'} claimed {other.source} at the same time.",
                    where=Where(flow=str(self._flow.flow), topic=other.topic, partition=other.partition),
                    action=f"Run only one of them at a time, then repeat: {self._again}.",
                )

    def settle(self) -> None:
        """Close the flow's positions of all partitions that the backfill does not write to any more.

        Positions of an interrupted run stay open until the backfill is repeated.

        Raises:
            RunLockedError: the flow's lock was lost.
            MirrorError: the position topic cannot be read or written.
        """
        live, own = self._live.read_all(), self._own.read_all().positions
        closed = []
        for each in self._backfill.ranges:
            stored, mine = live.positions.get(each.source), own.get(each.source)
            if stored is None or not self._is_marked(stored.position):
                continue
            if mine is not None and mine.position.state is not PositionState.CLOSED:
                continue
            # Marked, but never started: the backfill's position may be missing, or belong to an earlier run.
            ended = mine.position.target_offset if mine is not None else None
            target_offset = max(stored.position.target_offset or 0, ended or 0)
            closed.append(
                replace(stored.position, state=PositionState.CLOSED, backfill=None, target_offset=target_offset)
            )
        if closed:
            self._lease.check()
            former = {position.source: live.positions[position.source].position for position in closed}
            store_decided(self._flow, self._live, self._ledger, closed, former, run_id=self._run_id)

    def _position(self, source: TopicPartition) -> Position | None:
        stored = self._snapshot.positions.get(source)
        return None if stored is None else stored.position

    def _is_marked(self, live: Position) -> bool:
        return live.state is PositionState.OPEN and live.backfill == self._backfill.name

    def _where(self, each: BackfillRange) -> Where:
        return Where(flow=str(self._backfill.flow), topic=each.source.topic, partition=each.source.partition)
