"""What turns the fetches of a source partition into parts for whoever takes them: batches, or rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mirror_lib.cluster.batches import LeftOut
from mirror_lib.errors import MirrorError


class Part(Protocol):
    """Some of what was read, in the order of its offsets."""

    #: The source offset to go on from once this part is where it belongs.
    source_next: int


class Assembler(Protocol):
    """One source partition, fetch by fetch; `BatchAssembler` is the example for what each member means."""

    next_offset: int
    leader_epoch: int

    @property
    def failure(self) -> MirrorError | None:
        """Why the partition cannot go on at `next_offset`."""

    @property
    def finished(self) -> bool:
        """Whether everything before the end was fed."""

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for more."""

    def feed(self, data: bytes | bytearray | memoryview, aborted: Sequence[tuple[int, int]] = ()) -> Sequence[Part]:
        """Take what a fetch returned, and give what became ready."""

    @property
    def has_more(self) -> bool:
        """Whether there may be more in what was fed, which is only made once `more` is called."""

    def more(self) -> Sequence[Part]:
        """Give what comes next of what was fed."""

    def take_left_out(self) -> list[LeftOut]:
        """What was left out since the last call."""

    def flush(self) -> Part | None:
        """Give what waits for more."""

    def discard(self) -> None:
        """Let go of what waits for more."""

    def skip_to_end(self) -> Part | None:
        """Declare that the source holds nothing more before the end; gives what waited."""

    def gather_up_to(self, size: int) -> None:
        """Make parts of about this size from now on."""
