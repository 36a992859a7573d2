"""Storing positions while a long copy runs, so that a restart has little to compare.

Only what the target has acknowledged is stored, as `open`: the run has not ended. The end of a run stores `closed`
(mirror_lib.relay.commit.commit).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from mirror_lib.cluster.topics import Position
from mirror_lib.errors import MirrorError
from mirror_lib.relay.copy.open_positions import open_position_of
from mirror_lib.relay.copy.partition_progress import PartitionCopy
from mirror_lib.relay.model import CopyJob
from mirror_lib.topology import TopicPartition

if TYPE_CHECKING:
    from mirror_lib.cluster.topics import PositionStore

_log = logging.getLogger(__name__)
#: A position is one record. Where more is left out than this, a restart has to judge by the records themselves.
_MOST_OMISSIONS = 200


class PositionFlush:
    """Stores how far the partitions of a task are, every flush interval."""

    def __init__(self, job: CopyJob, copies: Sequence[PartitionCopy]) -> None:
        self._job = job
        sharing = Counter(copy.target for copy in copies)
        # In a merge one target offset says nothing about a single source: its positions are stored at the end only.
        self._copies = [copy for copy in copies if sharing[copy.target] == 1]
        self._stored: dict[TopicPartition, int] = {copy.source: copy.opened.plan.start for copy in self._copies}
        self._stack = ExitStack()
        self._store: PositionStore | None = None
        self._writing: asyncio.Future[None] | None = None
        #: One write at a time: of two, the later must not be overtaken by one that knows less.
        self._turn = asyncio.Lock()
        #: Partitions of which a transaction was committed since the last flush.
        self._committed: set[TopicPartition] = set()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Flush again and again, until cancelled."""
        if self._job.positions is None:
            return
        due = time.monotonic() + self._job.positions.flush_seconds
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(due - time.monotonic()):
                    await self._wanted.wait()
            if time.monotonic() >= due:
                await self.flush()
                due = time.monotonic() + self._job.positions.flush_seconds
            else:
                await self.flush_committed()

    def committed(self, copies: Sequence[PartitionCopy]) -> None:
        """Have partitions stored at once of which a transaction was committed.

        From then on the target's cleaner may take records away, and a restart has to compare what no position covers.
        """
        self._committed.update(copy.source for copy in copies)
        self._wanted.set()

    async def flush_committed(self) -> None:
        """Store the partitions of which a transaction was committed since the last flush."""
        self._wanted.clear()
        committed, self._committed = self._committed, set()
        await self.store([copy for copy in self._moved() if copy.source in committed])

    async def close(self) -> None:
        """Wait for what is being stored, and let go of the connection."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        self._stack.close()

    async def flush(self) -> None:
        """Store what moved since the last time."""
        self._wanted.clear()
        self._committed.clear()
        await self.store(self._moved())

    def _moved(self) -> list[PartitionCopy]:
        return [copy for copy in self._copies if copy.source_next > self._stored[copy.source]]

    async def store(self, copies: Sequence[PartitionCopy]) -> None:
        """Store how far these partitions are; a failure is only logged, since the next run can do without."""
        try:
            await self.keep(copies)
        except MirrorError as error:
            _log.warning("positions of flow %s were not stored; the next run can do without: %s", self._job.flow, error)

    async def keep(self, copies: Sequence[PartitionCopy]) -> None:
        """As `store`, for what must be known before anything else is sent: what these partitions leave out.

        Raises:
            MirrorError: a position was not acknowledged.
        """
        # A position must not pass records of which neither it nor the ledger says what became of them.
        kept = [copy for copy in copies if copy.source in self._stored and copy.omission_count <= _MOST_OMISSIONS]
        if not kept or self._job.positions is None:
            return
        async with self._turn:
            # Taken down before: the copies move on while this waits. A write goes on when the copy ends meanwhile.
            positions = [open_position_of(copy, self._job.run_id) for copy in kept]
            self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, positions))
            await asyncio.shield(self._writing)
        for position in positions:
            self._stored[position.source] = position.offset + 1

    async def declare(self, position: Position) -> None:
        """Store a position that must be known before anything else is sent.

        Raises:
            MirrorError: it was not acknowledged.
        """
        if self._job.positions is None:
            return
        async with self._turn:
            self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, [position]))
            await asyncio.shield(self._writing)

    def _write(self, positions: Sequence[Position]) -> None:
        # Most tasks end before the first flush, and need not load another Kafka client.
        from mirror_lib.cluster.topics import PositionStore

        topic = self._job.positions
        assert topic is not None
        if self._store is None:
            store = PositionStore(topic.connection, topic.topic, topic.source_alias, connector=topic.connector)
            self._store = self._stack.enter_context(store)
        self._store.write(positions)
