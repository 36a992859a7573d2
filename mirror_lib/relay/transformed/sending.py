"""The event loop of a writing half: the target's connections, the writer of the raw copy, and where rows may go.

It runs in a thread of its own. Batches are made in the thread that Spark's rows come in, and handed over.

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import uvloop

from mirror_lib.cluster.batches.left_out import LeftOut
from mirror_lib.cluster.batches.ready import ReadyBatch
from mirror_lib.cluster.positions import Position, Route
from mirror_lib.cluster.raw import RawClient, open_clients
from mirror_lib.config.model import PoisonPolicy
from mirror_lib.errors import MirrorError
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.relay.background import Background, reported
from mirror_lib.relay.fencing import fence
from mirror_lib.relay.model import CopyJob, OpenPartition
from mirror_lib.relay.open_positions import open_position
from mirror_lib.relay.partition_copy import PartitionCopy
from mirror_lib.relay.patient_reader import PatientReader
from mirror_lib.relay.position_flush import PositionFlush
from mirror_lib.relay.quarantine import Omissions
from mirror_lib.relay.retry import Backoff
from mirror_lib.relay.transformed.model import ReadEnd, reading_start
from mirror_lib.relay.transformed.outgoing import OutgoingBatches
from mirror_lib.relay.transformed.routes import RouteOpener, stored_routes
from mirror_lib.relay.transformed.tail import Tail
from mirror_lib.relay.writing import TargetWriter
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_WHO = "the writing half of a task"
_Answer = TypeVar("_Answer")
#: Partitions that are taken over at a time.
_AT_A_TIME = 8
#: Spark and the reading half hold rows too.
_MEMORY_PART = 4


@dataclass(slots=True, eq=False)
class Outlet:
    """One target partition as a place for rows of one source partition."""

    #: Used by the event loop alone once rows come.
    copy: PartitionCopy
    #: As the tail, used by the rows' thread alone.
    batches: OutgoingBatches
    #: What an interrupted run has written there, as long as not all of it was found again.
    tail: Tail | None = None
    #: Where copying was to begin by what is stored: what was found must reach it.
    known_to: int = 0


@dataclass(slots=True, eq=False)
class Sluice:
    """A source partition of the bin, and where its rows go: its own target partition, and those that are named."""

    #: As it was claimed.
    opened: OpenPartition
    main: Outlet
    routed: dict[TopicPartition, Outlet] = field(default_factory=dict)
    #: What its position says of `routed`.
    routes: tuple[Route, ...] = ()
    #: It has ended for another reason than that its source was not read further.
    broken: bool = False

    @property
    def outlets(self) -> tuple[Outlet, ...]:
        """All of them, its own first."""
        return (self.main, *self.routed.values())

    @property
    def failed(self) -> bool:
        """Whether nothing more is written for it."""
        return any(outlet.copy.error is not None for outlet in self.outlets)


class Sending:
    """Sends what the rows' thread gives it. All but `_`-methods are for that thread."""

    def __init__(self, job: CopyJob, number: int, *, exact: bool, routes: bool) -> None:
        """Begin to connect.

        Args:
            number: of the bin.
            exact: as of `RowJob`.
            routes: whether rows may go elsewhere than to their partition's own target.
        """
        self._job = job
        self._number = number
        self._exact = exact
        self._routes = routes
        self._leave_out = job.settings.poison_policy is not PoisonPolicy.FAIL
        self._limit = job.settings.task_memory_bytes // _MEMORY_PART
        self._room = threading.Condition()
        #: Bytes that are sent or wait to be, and not acknowledged.
        self._held = 0
        self._ready = threading.Event()
        self._crash: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: asyncio.Event | None = None
        self._sluices: list[Sluice] = []
        #: Outlets that are not settled, and those of which it was said that no more comes.
        self._open = 0
        self._over: set[int] = set()
        self._writer: TargetWriter | None = None
        self._omissions: Omissions | None = None
        self._opener: RouteOpener | None = None
        self._thread = threading.Thread(target=self._run, name="writing", daemon=True)
        self._thread.start()

    @property
    def sluices(self) -> Sequence[Sluice]:
        """The partitions of the bin, in its order, once it is known how each of them begins."""
        self._ready.wait()
        return self._sluices

    def send(self, outlet: Outlet, batch: ReadyBatch) -> None:
        """Hand over a batch; waits while too many are on their way."""
        size = len(batch.payload)
        with self._room:
            # One more than fits is let through: no batch is too large to be sent at all.
            while self._held and self._held + size > self._limit and self._crash is None:
                self._room.wait()
            self._held += size
        self._call(self._write, outlet.copy, batch)

    def route(self, sluice: Sluice, target: TopicPartition) -> Outlet:
        """The place for rows that a transform sends elsewhere.

        Raises:
            MirrorError: there is no such partition, or it cannot be written.
        """
        return sluice.routed.get(target) or self.run(self._open_route(sluice, target))

    def leave_out(self, outlet: Outlet, left_out: Sequence[LeftOut]) -> None:
        """See to what the flow's policy leaves out, before anything behind it is sent.

        Raises:
            MirrorError: it cannot be kept; the partition must stop.
        """
        assert self._omissions is not None
        self.run(self._omissions.leave_out(outlet.copy, left_out))

    def found(self, outlet: Outlet, runs: Sequence[OffsetRun], source_next: int) -> None:
        """Note what an interrupted run had written."""

        async def note() -> None:
            outlet.copy.found(runs, source_next)

        self.run(note())

    def fail(self, sluice: Sluice, error: MirrorError, *, certain: bool) -> None:
        """End a partition, wherever its rows go."""

        async def failed() -> None:
            sluice.broken = True
            for outlet in sluice.outlets:
                outlet.copy.fail(error, certain=certain)

        for outlet in sluice.outlets:
            outlet.batches.discard()
        # After a crash of the loop all partitions fail anyway.
        if self._crash is None:
            self.run(failed())

    def end(self, sluice: Sluice, end: ReadEnd) -> None:
        """No more rows come."""
        self._call(self._ended, sluice, end)

    def finish(self) -> Sequence[Sluice]:
        """Wait until everything is settled; all partitions have an end then."""
        self._thread.join()
        if self._crash is not None:
            told = reported(self._crash, _WHO)
            for outlet in (outlet for sluice in self._sluices for outlet in sluice.outlets):
                if not outlet.copy.finished:
                    outlet.copy.fail(told, certain=outlet.copy.unacknowledged_batches == 0)
        return self._sluices

    def stop(self) -> None:
        """Give up: nobody asks how it ends any more."""
        self._ready.wait()
        if self._loop is not None and self._done is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()

    def run(self, work: Coroutine[None, None, _Answer]) -> _Answer:
        """Run something in the event loop and wait for it.

        Raises:
            MirrorError: what it raises, or that the loop has ended.
        """
        if self._loop is None or self._crash is not None:
            work.close()
            raise reported(self._crash or RuntimeError("the event loop has ended"), _WHO)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if self._thread.is_alive() and self._loop is not None:
            self._loop.call_soon_threadsafe(function, *arguments)

    # ------------------------------------------------------------ in the event loop's thread

    def _run(self) -> None:
        try:
            uvloop.run(self._main())
        except Exception as error:
            self._crash = self._crash or error
        finally:
            if not self._sluices:
                # It could not even begin.
                assert self._crash is not None
                self._sluices = [
                    self._failed(each, reported(self._crash, _WHO)) for each in self._job.bins[self._number]
                ]
            self._ready.set()
            with self._room:
                self._room.notify_all()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        backoff = Backoff(self._job.settings.retry_max_seconds)
        while True:
            try:
                async with open_clients(self._job.target) as (target,):
                    self._opener = RouteOpener(self._job, target)
                    self._sluices = await self._begun(target)
                    await self._send_all(target)
                    return
            except MirrorError as error:
                # Only connecting can end here, before any row was taken.
                if self._ready.is_set() or not error.retriable or not backoff.failed(error):
                    raise
                await asyncio.sleep(max(backoff.not_before - time.monotonic(), 0))

    async def _begun(self, target: RawClient) -> list[Sluice]:
        limit = asyncio.Semaphore(_AT_A_TIME)

        async def one(opened: OpenPartition) -> Sluice:
            async with limit:
                try:
                    return await self._begin(opened, target)
                except MirrorError as error:
                    return self._failed(opened, error)

        return list(await asyncio.gather(*(one(opened) for opened in self._job.bins[self._number])))

    async def _begin(self, opened: OpenPartition, target: RawClient) -> Sluice:
        if opened.takeover is None:
            return Sluice(opened, self._outlet(opened))
        sluice = Sluice(opened, await self._taken_over(opened, target))
        sluice.main.known_to = opened.plan.start
        if self._routes:
            assert self._opener is not None
            # What was written elsewhere since the certain pair; a later attempt's job does not know of it.
            for route in await asyncio.to_thread(stored_routes, self._job, opened):
                await self._take_over_route(sluice, opened, route, target)
        return sluice

    async def _taken_over(
        self, opened: OpenPartition, target: RawClient, recovered: Sequence[OffsetRun] | None = None
    ) -> Outlet:
        takeover = opened.takeover
        assert takeover is not None
        log = PatientReader(target, opened.plan.target, self._job.settings, read_committed=False)
        identity, end = await fence(self._job, opened, target, log)
        taken = replace(
            opened,
            plan=replace(opened.plan, start=reading_start(opened), leader_epoch=None),
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            target_offset=end,
            takeover=None,
            taken_over=True,
        )
        outlet = self._outlet(taken, recovered=takeover.runs if recovered is None else recovered)
        if self._exact:
            retry_seconds = self._job.settings.retry_max_seconds
            first = max(takeover.target_offset, takeover.target_log_start)
            outlet.tail = Tail(log, opened.plan.target, first, end, retry_seconds=retry_seconds)
        return outlet

    async def _take_over_route(self, sluice: Sluice, opened: OpenPartition, route: Route, target: RawClient) -> None:
        assert self._opener is not None
        assert opened.takeover is not None
        elsewhere = self._opener.partition(sluice.main.copy.opened, TopicPartition(route.topic, route.partition))
        takeover = replace(
            opened.takeover,
            target_offset=route.target_offset,
            target_log_start=0,
            # Whoever wrote there had an identity of its own; fencing by the name reaches it.
            producer_id=None,
            epoch=None,
            left_out=(),
            runs=(),
        )
        outlet = await self._taken_over(replace(elsewhere, takeover=takeover, taken_over=False), target)
        sluice.routed[outlet.copy.target] = outlet
        sluice.routes = (*sluice.routes, route)

    def _outlet(self, opened: OpenPartition, recovered: Sequence[OffsetRun] = ()) -> Outlet:
        settings = self._job.settings
        batches = OutgoingBatches(opened.plan, settings, start=opened.plan.start, leave_out=self._leave_out)
        copy = PartitionCopy(
            self._job.flow,
            opened,
            settings,
            read_committed=self._job.read_committed,
            recovered=recovered,
            assembler=batches,
        )
        return Outlet(copy, batches)

    def _failed(self, opened: OpenPartition, error: MirrorError) -> Sluice:
        """A partition that could not be taken over, or not even tried; its position stays open."""
        outlet = self._outlet(replace(opened, plan=replace(opened.plan, start=reading_start(opened))))
        outlet.copy.fail(error, certain=opened.takeover is None)
        return Sluice(opened, outlet, broken=True)

    async def _send_all(self, target: RawClient) -> None:
        assert self._done is not None
        copies = [outlet.copy for sluice in self._sluices for outlet in sluice.outlets]
        background = Background(self._crashed)
        flush = self._flush = PositionFlush(self._job, [sluice.main.copy for sluice in self._sluices])
        self._omissions = Omissions(self._job, target, kept=_kept_by_all if self._routes else flush.keep)
        self._writer = TargetWriter(
            target,
            copies,
            self._job.settings,
            background,
            acknowledged=self._acknowledged,
            omissions=self._omissions,
            tasks=len(self._job.bins),
        )
        self._open = len(copies)
        try:
            await self._writer.start()
            # A position must not pass what only the reading half knows to be left out, nor rows that are on their way
            # to several partitions.
            if not self._leave_out and not self._routes:
                background.start(flush.run())
            self._ready.set()
            await self._done.wait()
        finally:
            await background.stop()
            await flush.close()

    async def _open_route(self, sluice: Sluice, target: TopicPartition) -> Outlet:
        assert self._opener is not None
        assert self._writer is not None
        main = sluice.main.copy
        opened = await self._opener.opened(main.opened, target, self._writer.end_of(target))
        outlet = self._outlet(replace(opened, plan=replace(opened.plan, start=main.source_next)))
        routes = (*sluice.routes, Route(target.topic, target.partition, opened.target_offset))
        # Whoever takes over must know where to look, before anything is there.
        await self._flush.declare(replace(self._declared(sluice), routes=routes))
        sluice.routes = routes
        sluice.routed[target] = outlet
        self._open += 1
        self._writer.add(outlet.copy)
        return outlet

    def _declared(self, sluice: Sluice) -> Position:
        """The position that claims it, by who writes now: the pair of offsets behind which nothing is certain."""
        now = sluice.main.copy.opened
        return replace(open_position(sluice.opened, self._job.run_id), producer_id=now.producer_id, epoch=now.epoch)

    def _write(self, copy: PartitionCopy, batch: ReadyBatch) -> None:
        assert self._writer is not None
        size = len(batch.payload)
        if copy.read_done or not self._writer.write(copy, [batch]):
            self._release(size)

    def _acknowledged(self, copy: PartitionCopy, size: int) -> None:
        self._release(size)
        self._settle(copy)

    def _release(self, size: int) -> None:
        with self._room:
            self._held -= size
            self._room.notify()

    def _ended(self, sluice: Sluice, end: ReadEnd) -> None:
        sluice.main.copy.note_poison(end.poison)
        for outlet in sluice.outlets:
            copy, batches = outlet.copy, outlet.batches
            self._over.add(id(copy))
            if not copy.read_done:
                # All rows before it have come, and whatever was dropped behind the last of them is done with.
                batches.next_offset = end.source_next
                batches.leader_epoch = -1 if end.leader_epoch is None else end.leader_epoch
                if end.error is not None:
                    copy.fail(end.error)
                copy.read_done = True
            self._settle(copy)

    def _settle(self, copy: PartitionCopy) -> None:
        if not copy.finished and copy.read_done and id(copy) in self._over and copy.finish_if_settled():
            self._open -= 1
            if self._open == 0 and self._done is not None:
                self._done.set()

    def _crashed(self, error: BaseException) -> None:
        self._crash = self._crash or error
        if self._done is not None:
            self._done.set()


async def _kept_by_all(_copies: Sequence[PartitionCopy]) -> None:
    """What is left out is found again by whoever takes over: no position lies between the outlets of a partition."""
