"""Records of one log that have no equal at their place in the other log. 48 bytes each, whatever their size."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from mirror_lib.features.verify.compare.realignment import parts

_BYTES = 8
#: The hash of a key or value that is null.
NULL = 0


class Unmatched(NamedTuple):
    """One record. Parts are hashes of 64 bits; equal hashes count as equal parts."""

    offset: int
    #: Epoch milliseconds; `side.REPLACED` if the broker has set it.
    time: int
    key: int
    value: int
    headers: int
    #: Number of its place between equal records of both logs; negative if there are no such places.
    hunk: int
    partition: int = 0

    @property
    def content(self) -> tuple[int, int, int]:
        """What identifies it without its timestamp."""
        return self.key, self.value, self.headers


def part_hash(part: bytes | None) -> int:
    """Hash of a key, a value or the encoded headers; the same in every process."""
    if part is None:
        return NULL
    return int.from_bytes(blake2b(part, digest_size=_BYTES).digest(), "big", signed=True)


def content_of(tail: bytes) -> tuple[int, int, int]:
    """Hashes of key, value and headers of what follows a record's deltas on the wire."""
    try:
        key, value, headers = parts(tail)
    except ValueError:
        # No client writes that; it is one thing as a whole.
        return NULL, part_hash(tail), NULL
    return part_hash(key), part_hash(value), part_hash(headers)


def key_of(tail: bytes) -> bytes | None:
    """The key in what follows a record's deltas on the wire; all of it if it is no record."""
    try:
        return parts(tail)[0]
    except ValueError:
        return tail


class UnmatchedRecords:
    """Such records of one partition, in the order in which they were found."""

    _COLUMNS = len(Unmatched._fields) - 1

    def __init__(self, partition: int = 0) -> None:
        self._values = array("q")
        self._partition = partition

    def add(self, offset: int, time: int, tail: bytes, hunk: int) -> None:
        """Add a record."""
        self._values.extend((offset, time, *content_of(tail), hunk))

    def __len__(self) -> int:
        return len(self._values) // self._COLUMNS

    def __iter__(self) -> Iterator[Unmatched]:
        values = iter(self._values)
        return (Unmatched._make((*row, self._partition)) for row in zip(*(values,) * self._COLUMNS, strict=True))

    def shorten(self, count: int) -> None:
        """Keep only the first `count` records."""
        del self._values[count * self._COLUMNS :]
