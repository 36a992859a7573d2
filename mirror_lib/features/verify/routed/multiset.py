"""Multiset digests: the number of records, in any order, and the sum of a keyed digest of each.

Sums of digests can be added and subtracted, so partial sums are combined, and records that both sides have cancel out.
In addition to the total, digests are summed in cells, each record in three of them, as in an invertible Bloom lookup
table (Goodrich and Mitzenmacher, 2011): if two multisets differ in few records, some cells hold the digest of one of
these alone; it is removed from its other cells, and so on. So the comparison itself yields the digests of missing and
surplus records. It takes the same memory for any number of records.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Bytes of the digest of a record.
DIGEST_BYTES = 16
_SLOTS = DIGEST_BYTES // 4
#: Each record is in one cell of each table. About 0.8 differing records for each cell can be identified.
_TABLES, _CELLS = 3, 64
#: Of a cell: number of records, the four slots of their digests, and a number that only one digest has.
_COUNT, _CHECK, _WIDTH = 0, 1 + _SLOTS, 2 + _SLOTS
_MODULUS = 1 << (8 * DIGEST_BYTES)
_LANE = 1 << 32
_TIME = struct.Struct(">q")

Int64s = NDArray[np.int64]
#: Digests, one a row, in slots of 32 bits.
Digests = NDArray[np.uint32]


class Surplus(NamedTuple):
    """A digest that one multiset holds more often than the other."""

    digest: bytes
    #: How much more often; negative if the other one does.
    times: int


def record_digests(key: bytes, times: Sequence[int] | None, tails: Sequence[bytes]) -> Digests:
    """A digest of key, value, headers and timestamp of each record.

    Args:
        key: of the digest (BLAKE2b), at most 64 bytes: nobody else can make records whose digests add up to the same.
        times: epoch milliseconds; None where timestamps do not count.
        tails: key, value and headers as they are encoded in a batch (`records.Record.tail`).
    """
    keyed = hashlib.blake2b(digest_size=DIGEST_BYTES, key=key)
    digests: list[bytes] = []
    for number, tail in enumerate(tails):
        each = keyed.copy()
        if times is not None:
            each.update(_TIME.pack(times[number]))
        each.update(tail)
        digests.append(each.digest())
    return np.frombuffer(b"".join(digests), dtype="<u4").reshape(-1, _SLOTS)


@dataclass(slots=True, eq=False)
class Multiset:
    """A multiset of records by their digests. Two with the same `count` and `total` are taken to be equal."""

    count: int = 0
    #: Of all digests, as numbers, modulo 2**128.
    total: int = 0
    _cells: Int64s = field(default_factory=lambda: np.zeros((_TABLES * _CELLS, _WIDTH), dtype=np.int64), repr=False)

    def add(self, digests: Digests) -> None:
        """Add records."""
        if not len(digests):
            return
        wide = digests.astype(np.int64)
        rows = np.empty((len(wide), _WIDTH), dtype=np.int64)
        rows[:, _COUNT] = 1
        rows[:, 1:_CHECK] = wide
        rows[:, _CHECK] = _checks(digests)
        for table in range(_TABLES):
            np.add.at(self._cells, _TABLES_FIRST[table] + wide[:, table] % _CELLS, rows)
        self.count += len(digests)
        sums = wide.sum(axis=0).tolist()
        self.total = (self.total + sum(slot << (32 * at) for at, slot in enumerate(sums))) % _MODULUS

    def plus(self, other: Multiset) -> Multiset:
        """Return the sum of both."""
        return Multiset(self.count + other.count, (self.total + other.total) % _MODULUS, self._cells + other._cells)

    def minus(self, other: Multiset) -> Multiset:
        """Return the difference; a record that only the other has counts below zero."""
        return Multiset(self.count - other.count, (self.total - other.total) % _MODULUS, self._cells - other._cells)

    def same_as(self, other: Multiset) -> bool:
        """Return True if both hold the same records, each as often."""
        return (self.count, self.total) == (other.count, other.total)

    def surplus(self) -> tuple[Surplus, ...] | None:
        """Return the digests in a difference of two multisets; None if they are too many to identify."""
        cells = self._cells.copy()
        found: dict[bytes, int] = {}
        waiting = list(range(len(cells)))
        # An upper bound of steps, exceeded only if cells falsely appear to hold one digest.
        for _ in range(len(cells) * _TABLES * _TABLES):
            if not waiting:
                break
            digest, times = _only_one(cells[waiting.pop()])
            if not times:
                continue
            slots = np.frombuffer(digest, dtype="<u4").reshape(1, _SLOTS)
            row = np.empty(_WIDTH, dtype=np.int64)
            row[_COUNT], row[1:_CHECK], row[_CHECK] = 1, slots[0], _checks(slots)[0]
            for table in range(_TABLES):
                cell = _TABLES_FIRST[table] + int(slots[0, table]) % _CELLS
                cells[cell] -= times * row
                waiting.append(cell)
            found[digest] = found.get(digest, 0) + times
        if cells.any():
            return None
        return tuple(Surplus(digest, times) for digest, times in sorted(found.items()) if times)


_TABLES_FIRST = tuple(table * _CELLS for table in range(_TABLES))


def _checks(digests: Digests) -> Int64s:
    """Return a number for each digest; numbers of a sum of digests differ from it."""
    mixed = digests[:, 0] * np.uint32(0x9E3779B1) ^ digests[:, 1] * np.uint32(0x85EBCA77)
    mixed ^= digests[:, 2] * np.uint32(0xC2B2AE3D) ^ digests[:, 3] * np.uint32(0x27D4EB2F)
    mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    checks: Int64s = (mixed ^ (mixed >> np.uint32(13))).astype(np.int64)
    return checks


def _only_one(cell: Int64s) -> tuple[bytes, int]:
    """Return the digest in a cell that holds no other, and how often; zero times if it holds none or several."""
    count = int(cell[_COUNT])
    if not count:
        return b"", 0
    slots = [int(slot) for slot in cell[1:_CHECK]]
    if any(slot % count or not 0 <= slot // count < _LANE for slot in slots):
        return b"", 0
    digest = np.array([slot // count for slot in slots], dtype="<u4").reshape(1, _SLOTS)
    if int(_checks(digest)[0]) * count != int(cell[_CHECK]):
        return b"", 0
    return digest.tobytes(), count
