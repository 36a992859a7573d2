"""What rows may take while they are made of batches that are small as they are fetched, and large once decompressed."""

from __future__ import annotations

from dataclasses import dataclass

_KIBIBYTE = 1024
_MEBIBYTE = 1024 * 1024
#: What `mirror.task.memory.bytes` is divided by.
_PART, _BODY, _RECORD = 24, 12, 4


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Bytes, all of them once decompressed.

    Attributes:
        part: that the rows of one Arrow batch take, about, but for a single row that takes more.
        body: of a batch up to which it is decompressed as a whole; larger ones are read piece by piece.
        record: that a single record may take as a row.
    """

    part: int = 4 * _MEBIBYTE
    body: int = 8 * _MEBIBYTE
    record: int = 24 * _MEBIBYTE

    @classmethod
    def within(cls, task_memory: int) -> DecodeLimits:
        """The limits that belong to a `mirror.task.memory.bytes`."""
        return cls(
            part=min(max(task_memory // _PART, 256 * _KIBIBYTE), 8 * _MEBIBYTE),
            body=min(max(task_memory // _BODY, 512 * _KIBIBYTE), 16 * _MEBIBYTE),
            record=max(task_memory // _RECORD, _MEBIBYTE),
        )
