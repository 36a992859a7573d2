"""Memory limits for rows, since batches that are small as fetched may be large when decompressed."""

from __future__ import annotations

from dataclasses import dataclass

_KIBIBYTE = 1024
_MEBIBYTE = 1024 * 1024
#: Divisors of `mirror.task.memory.bytes`.
_PART, _BODY, _RECORD = 24, 12, 4


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Limits in bytes, all of them decompressed.

    Attributes:
        part: approximate size of the rows of one Arrow batch, except for a larger single row.
        body: maximum size of a body that is decompressed as a whole; larger ones are read in pieces.
        record: maximum size of a single record as a row.
    """

    part: int = 4 * _MEBIBYTE
    body: int = 8 * _MEBIBYTE
    record: int = 24 * _MEBIBYTE

    @classmethod
    def within(cls, task_memory: int) -> DecodeLimits:
        """The limits for a `mirror.task.memory.bytes`."""
        return cls(
            part=min(max(task_memory // _PART, 256 * _KIBIBYTE), 8 * _MEBIBYTE),
            body=min(max(task_memory // _BODY, 512 * _KIBIBYTE), 16 * _MEBIBYTE),
            record=max(task_memory // _RECORD, _MEBIBYTE),
        )
