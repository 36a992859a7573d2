"""The interface that turns the fetches of a source partition into parts for the writer: batches or rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mirror_lib.errors import MirrorError
from mirror_lib.records.skipped import SkippedRecords
from mirror_lib.records.transactions import TransactionCount


class Part(Protocol):
    """Some of the fetched records, in the order of their offsets."""

    #: The source offset at which the copy continues once this part is written.
    source_next: int


class Assembler(Protocol):
    """One source partition, fetch by fetch; `BatchAssembler` shows what each member means.

    A subclass that is not fed inherits the members that read.
    """

    next_offset: int
    leader_epoch: int

    @property
    def failure(self) -> MirrorError | None:
        """Why the partition cannot continue at `next_offset`."""
        return None

    @property
    def is_finished(self) -> bool:
        """True if everything before the end was fed."""
        return False

    @property
    def held_bytes(self) -> int:
        """Buffered bytes that wait for more."""
        return 0

    def feed(self, data: bytes | bytearray | memoryview, aborted: Sequence[tuple[int, int]] = ()) -> Sequence[Part]:
        """Take the response to a fetch, and return the parts that are complete."""
        raise AssertionError(f"{self} was fed with {len(data)} bytes and {len(aborted)} aborted transactions")

    @property
    def has_more(self) -> bool:
        """True if the fed data may hold further parts, which are made when `more` is called."""
        return False

    def more(self) -> Sequence[Part]:
        """Return the next parts of the fed data."""
        return []

    def transactions(self, copied_to: int) -> TransactionCount | None:  # noqa: ARG002 - one of several
        """Return the count of records of transactions; None if they are not counted."""
        return None

    def take_skipped(self) -> list[SkippedRecords]:
        """Return the records skipped since the last call."""
        return []

    def flush(self) -> Part | None:
        """Return the incomplete part."""
        return None

    def discard(self) -> None:
        """Drop the incomplete part."""

    def skip_to_end(self) -> Part | None:
        """Declare that the source has no more records before the end; return the incomplete part."""
        return None

    def gather_up_to(self, size: int) -> None:
        """Make parts of about this size from now on."""
