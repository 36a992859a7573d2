"""How many partitions of a task's loop are not settled, and the event that ends the loop."""

from __future__ import annotations

import asyncio

from mirror_lib.copy.transfer.partition_progress import PartitionCopy


class OpenCopies:
    """The loop ends once all partitions are settled, or at the first internal error."""

    def __init__(self, count: int = 0) -> None:
        self.error: BaseException | None = None
        self._count = count
        # It belongs to the event loop that waits for it first, so any thread may make it.
        self._ended = asyncio.Event()

    @property
    def have_ended(self) -> bool:
        """True if the loop must not wait."""
        return self._ended.is_set()

    def begin(self, count: int) -> None:
        """Set the number of partitions."""
        self._count = count

    def add(self) -> None:
        """Count one more partition."""
        self._count += 1

    def settle(self, copy: PartitionCopy) -> None:
        """Count a partition once, if all that was read of it is acknowledged."""
        if not copy.finished and copy.finish_if_settled():
            self._count -= 1
            if self._count == 0:
                self.end()

    def crash(self, error: BaseException) -> None:
        """End the loop with an internal error; the first one counts."""
        self.error = self.error or error
        self.end()

    def end(self) -> None:
        """End the loop; only from its thread."""
        self._ended.set()

    async def wait(self) -> None:
        """Wait for the end."""
        await self._ended.wait()
