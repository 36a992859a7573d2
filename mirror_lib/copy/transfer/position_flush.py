"""Store positions during a long copy, so that a restart has little to compare.

Only what the target has acknowledged is stored, as `open`: the run has not ended. The end of a run stores `closed`
(mirror_lib.copy.commit.commit).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.copy.transfer.open_positions import open_position_of
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.errors import MirrorError
from mirror_lib.planning.model import CopyJob
from mirror_lib.topology.names import TopicPartition

if TYPE_CHECKING:
    from mirror_lib.cluster.topics.position_store import PositionStore

_log = logging.getLogger(__name__)
#: Maximum skipped ranges in a position, which is one record. With more, a restart decides from the records themselves.
_MOST_OMISSIONS = 200


class PositionFlush:
    """Stores the positions of a task's partitions every flush interval."""

    def __init__(self, job: CopyJob, copies: Sequence[PartitionCopy]) -> None:
        self._job = job
        sharing = Counter(copy.target for copy in copies)
        # In a merge one target offset does not identify a single source: its positions are stored at the end only.
        self._copies = [copy for copy in copies if sharing[copy.target] == 1]
        self._stored: dict[TopicPartition, int] = {copy.source: copy.opened.plan.start for copy in self._copies}
        self._stack = ExitStack()
        self._store: PositionStore | None = None
        self._writing: asyncio.Future[None] | None = None
        #: One write at a time: an older position must not overtake a newer one.
        self._turn = asyncio.Lock()
        #: Partitions with a transaction committed since the last flush.
        self._committed: set[TopicPartition] = set()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Flush periodically, until cancelled."""
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

    def store_committed(self, copies: Sequence[PartitionCopy]) -> None:
        """Store partitions with a committed transaction at once.

        From the commit on the target's log cleaner may remove records, but a restart compares what no position covers.
        """
        self._committed.update(copy.source for copy in copies)
        self._wanted.set()

    async def flush_committed(self) -> None:
        """Store the partitions with a transaction committed since the last flush."""
        self._wanted.clear()
        committed, self._committed = self._committed, set()
        await self.store([copy for copy in self._advanced_copies() if copy.source in committed])

    async def close(self) -> None:
        """Wait for the write in progress, and close the connection."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        self._stack.close()

    async def flush(self) -> None:
        """Store the positions that have moved since the last flush."""
        self._wanted.clear()
        self._committed.clear()
        await self.store(self._advanced_copies())

    def _advanced_copies(self) -> list[PartitionCopy]:
        return [copy for copy in self._copies if copy.source_next > self._stored[copy.source]]

    async def store(self, copies: Sequence[PartitionCopy]) -> None:
        """Store the positions of these partitions; a failure is only logged, since the next run can do without."""
        try:
            await self.keep(copies)
        except MirrorError as error:
            _log.warning(
                "positions of flow %s were not stored; the next run does not need them: %s", self._job.flow, error
            )

    async def keep(self, copies: Sequence[PartitionCopy]) -> None:
        """Store what must be known before anything else is sent: the skipped ranges of these partitions.

        Raises:
            MirrorError: a position was not acknowledged.
        """
        # A position must not pass skipped records that neither it nor the ledger records.
        kept = [copy for copy in copies if copy.source in self._stored and copy.omission_count <= _MOST_OMISSIONS]
        if not kept or self._job.positions is None:
            return
        async with self._turn:
            # Snapshot first: the copies advance during the write. The write continues if the copy ends meanwhile.
            positions = [open_position_of(copy, self._job.run_id) for copy in kept]
            self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, positions))
            await asyncio.shield(self._writing)
        for position in positions:
            self._stored[position.source] = position.offset + 1

    async def declare(self, position: Position) -> None:
        """Store a position that must be known before anything else is sent.

        Raises:
            MirrorError: the position was not acknowledged.
        """
        if self._job.positions is None:
            return
        async with self._turn:
            self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, [position]))
            await asyncio.shield(self._writing)

    def _write(self, positions: Sequence[Position]) -> None:
        # Most tasks end before the first flush, and need not load another Kafka client.
        from mirror_lib.cluster.topics.position_store import PositionStore

        topic = self._job.positions
        assert topic is not None
        if self._store is None:
            store = PositionStore(topic.connection, topic.topic, topic.source_alias, connector=topic.connector)
            self._store = self._stack.enter_context(store)
        self._store.write(positions)
