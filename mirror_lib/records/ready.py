"""A batch that is ready except for its producer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ReadyBatch:
    """One batch for the target, and the source offsets of its records."""

    #: A complete magic-2 batch with a valid checksum. May be a part of the fetched data, with the source's offset,
    #: leader epoch, producer and transaction: `stamp` replaces them.
    payload: bytearray | memoryview
    #: The number of records, and of target offsets: the batch has no holes.
    count: int
    #: (first source offset, records) in order; a hole in the source starts a new pair. The records sum to `count`.
    source_runs: tuple[tuple[int, int], ...]
    #: The source offset to continue from once the target has this batch; covers dropped offsets.
    source_next: int
    #: Epoch milliseconds; -1 for records without a timestamp (magic 0).
    first_timestamp: int
    max_timestamp: int
