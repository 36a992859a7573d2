"""What leaves this package: a batch that only lacks its sender."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ReadyBatch:
    """One batch for the target, and where its records come from."""

    #: A complete magic-2 batch whose checksum is right. May be a part of what the source has sent, with the offset,
    #: the leader epoch, the producer and the transaction that it had there: `stamp` is still to replace them.
    payload: bytearray | memoryview
    #: Records, which is also the number of target offsets that it takes: there are no holes in it.
    count: int
    #: (first source offset, records) in order; a hole in the source begins a new pair. The records sum to `count`.
    source_runs: tuple[tuple[int, int], ...]
    #: The source offset to go on from once the target has this batch; covers offsets that were dropped.
    source_next: int
    #: Epoch milliseconds, -1 for records older than timestamps (magic 0).
    first_timestamp: int
    max_timestamp: int
