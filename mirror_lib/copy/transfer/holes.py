"""Holes of the source: offsets without a record, which the target gets as markers of empty transactions.

With `mirror.offsets = same` each record is written at the offset that it has at the source. Where the source has no
record (markers of transactions, compaction, skipped records), as many transactions without a record are committed on
the target: the marker of each takes one offset that no consumer sees. The answer to EndTxn comes before the marker is
written (Java `TransactionCoordinator.endTransaction`), so nothing behind it is sent before it is on the partition.

A transaction gives one marker to every partition that waits for one, so partitions do not wait for each other's
requests. Its writer is the task's own, with a transactional id that positions name: a successor ends its transaction
before it compares the logs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.backoff import may_pass
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.copy.transfer.open_positions import hole_writer_id
from mirror_lib.copy.transfer.produce_errors import WriteFaults
from mirror_lib.copy.transfer.producer_state import Guard, PartitionWriter
from mirror_lib.copy.transfer.task_group import Background
from mirror_lib.errors import MirrorError, OffsetsDifferError, TransientError
from mirror_lib.topology.names import FlowId

if TYPE_CHECKING:
    from mirror_lib.copy.transfer.halves import Upstream

#: Seconds between looks for markers.
_FIRST_LOOK, _LAST_LOOK = 0.001, 0.1
#: Seconds until another look after an error.
_AFTER_ERROR = 0.2
#: Seconds that a transaction waits for the markers of the one before it, which must be complete: meanwhile more
#: partitions come to a hole.
_GATHERING = 0.05


class Holes:
    """Fills the holes of a task's target partitions."""

    def __init__(
        self,
        flow: FlowId,
        client: RawClient,
        background: Background,
        faults: WriteFaults,
        *,
        most: int,
        retry_seconds: float,
        upstream: Upstream,
        resume: Callable[[PartitionWriter], None],
    ) -> None:
        """Begin without holes.

        Args:
            client: client of the target.
            most: maximum number of offsets of a hole.
            retry_seconds: how long to retry for coordinators, leaders and markers.
            upstream: is notified when the end of a partition is filled.
            resume: sends to a partition again.
        """
        self._flow = flow
        self._client = client
        self._background = background
        self._faults = faults
        self._most = most
        self._retry_seconds = retry_seconds
        self._upstream = upstream
        self._resume = resume
        #: The offsets up to which partitions must be filled that wait for the next transaction.
        self._waiting: dict[PartitionWriter, int] = {}
        self._is_committing = False
        #: For the markers of the last transaction.
        self._looking: asyncio.Task[None] | None = None

    def fill(self, writer: PartitionWriter, upto: int) -> None:
        """Fill the offsets from the end of a partition up to `upto`; sending continues afterwards."""
        if writer.guard is not Guard.EPOCH or writer.failed is not None:
            return
        if (size := upto - writer.end) > self._most:
            error = OffsetsDifferError(
                f"{size:,} offsets from {writer.end} on have no record at the source, each takes a transaction on "
                f"{writer.target}, and mirror.offsets.pad.max.records allows {self._most:,}.",
                where=self._faults.where(writer),
                action="Allow more (docs/same-offsets.md says how long they take).",
            )
            self._faults.fail(writer, error, certain=True)
            return
        writer.guard = Guard.FILLING
        self._wait(writer, upto)

    def _wait(self, writer: PartitionWriter, upto: int) -> None:
        self._waiting[writer] = upto
        if not self._is_committing:
            self._is_committing = True
            self._background.start(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            while self._waiting:
                if self._looking is not None:
                    await asyncio.wait([self._looking], timeout=_GATHERING)
                # What one response acknowledges waits together.
                await asyncio.sleep(0)
                waiting, self._waiting = self._waiting, {}
                for writer in [each for each in waiting if each.failed is not None]:
                    del waiting[writer]
                    self._go_on(writer)
                if waiting:
                    await self._commit(waiting)
        finally:
            self._is_committing = False

    async def _commit(self, holes: Mapping[PartitionWriter, int]) -> None:
        """Give every partition one marker."""
        (name, identity), deadline = self._writer(holes), time.monotonic() + self._retry_seconds
        targets, producers = [writer.target for writer in holes], self._client.producers
        try:
            await producers.add_to_transaction(name, identity, targets, deadline=deadline)
        except MirrorError as error:
            if len(holes) == 1 or error.retriable:
                self._fail(holes, error)
                return
            # One is refused, and with it all.
            for writer, upto in holes.items():
                await self._commit({writer: upto})
            return
        try:
            await producers.end_transaction(name, identity, commit=True, deadline=deadline)
        except MirrorError as error:
            self._fail(holes, error)
        else:
            self._looking = self._background.start(self._see_markers(dict(holes), deadline))

    def _writer(self, holes: Collection[PartitionWriter]) -> tuple[str, ProducerIdentity]:
        """The transactional id and the newest identity of the task's writer of markers."""
        known = [copy.opened.hole_writer for writer in holes for copy in writer.copies]
        newest = max((each for each in known if each is not None), key=lambda each: (each.producer_id, each.epoch))
        return hole_writer_id(self._flow, newest.number), ProducerIdentity(newest.producer_id, newest.epoch)

    async def _see_markers(self, left: dict[PartitionWriter, int], deadline: float) -> None:
        """Wait until the markers are replicated."""
        pause, troubles = _FIRST_LOOK, dict[PartitionWriter, MirrorError]()
        while True:
            found = await self._high_watermarks(left)
            errors = {writer: each for writer, each in found.items() if isinstance(each, MirrorError)}
            self._fail([writer for writer, error in errors.items() if not may_pass(error)], errors)
            for writer, end in found.items():
                if not isinstance(end, MirrorError) and end > writer.end:
                    self._record(writer, end, upto=left.pop(writer))
                elif writer.failed is not None:
                    left.pop(writer)
            if not left:
                return
            troubles |= errors
            if time.monotonic() > deadline:
                self._fail(left, {writer: troubles.get(writer) or self._no_marker(writer) for writer in left})
                return
            if errors:
                await self._find_leaders({writer.target.topic for writer in errors})
            await asyncio.sleep(max(pause, _AFTER_ERROR) if len(errors) == len(left) else pause)
            pause = min(2 * pause, _LAST_LOOK)

    async def _high_watermarks(self, writers: Collection[PartitionWriter]) -> dict[PartitionWriter, int | MirrorError]:
        found: dict[PartitionWriter, int | MirrorError] = {}
        by_leader: dict[int, list[PartitionWriter]] = {}
        for writer in writers:
            leader = self._client.leader(writer.target)
            if leader is None:
                where = self._faults.where(writer)
                found[writer] = error_for_code(ErrorCode.LEADER_NOT_AVAILABLE, where=where, doing="find the leader")
            else:
                by_leader.setdefault(leader, []).append(writer)

        async def look(leader: int, group: list[PartitionWriter]) -> None:
            try:
                ends = await self._client.high_watermarks(leader, [writer.target for writer in group])
            except MirrorError as error:
                found.update(dict.fromkeys(group, error))
            else:
                found.update({writer: ends[writer.target] for writer in group})

        await asyncio.gather(*(look(leader, group) for leader, group in by_leader.items()))
        return found

    async def _find_leaders(self, topics: Collection[str]) -> None:
        try:
            await self._client.refresh_leaders(topics)
        except MirrorError:
            return  # The next look finds it.

    def _record(self, writer: PartitionWriter, end: int, *, upto: int) -> None:
        if end != writer.end + 1:
            self._faults.fail_diverged(
                writer, f"the end of {writer.target} is {end}, expected {writer.end + 1} behind a marker"
            )
        else:
            writer.record_marker()
            for copy in writer.copies:
                copy.ended_transaction(writer.end)
            if writer.end < upto:
                self._wait(writer, upto)
                return
        self._go_on(writer)

    def _fail(
        self, writers: Collection[PartitionWriter], errors: MirrorError | Mapping[PartitionWriter, MirrorError]
    ) -> None:
        """End partitions: whether their markers will come is unknown, and nothing may follow them unseen."""
        for writer in writers:
            self._faults.fail(writer, errors if isinstance(errors, MirrorError) else errors[writer], certain=False)
            self._go_on(writer)

    def _go_on(self, writer: PartitionWriter) -> None:
        writer.guard = Guard.EPOCH
        # A broker may have forgotten the producer meanwhile: the next batch goes alone.
        writer.known_over = None
        for copy in writer.copies:
            self._upstream.acknowledged(copy, 0)
        if writer.failed is None:
            self._resume(writer)

    def _no_marker(self, writer: PartitionWriter) -> TransientError:
        return TransientError(
            f"the marker of an ended transaction did not appear on {writer.target} at offset {writer.end}.",
            where=self._faults.where(writer),
            action="Check that the brokers of this cluster reach each other; the next run looks for it.",
        )
