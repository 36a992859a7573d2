"""Records of many shapes, from a seed: keys and values null, empty or long, headers that repeat or are null."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

from tools.faults.records.stamp import Headers

#: Bytes that compress about as well as text; values are different slices of it.
_STOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Payload:
    """A record without its partition and its stamp."""

    key: bytes | None
    value: bytes | None
    headers: Headers


class PayloadMill:
    """An endless sequence of payloads, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    @cached_property
    def _stock(self) -> bytes:
        words = [self._random.randbytes(6).hex().encode() for _ in range(400)]
        return b" ".join(self._random.choice(words) for _ in range(_STOCK_BYTES // 13))

    def next(self) -> Payload:
        """Return the next one."""
        return Payload(self._key(), self._value(), self._headers())

    def _key(self) -> bytes | None:
        kind = self._random.random()
        if kind < 0.1:
            return None
        return b"" if kind < 0.15 else b"key-%d" % self._random.randrange(10_000)

    def _value(self) -> bytes | None:
        kind = self._random.random()
        if kind < 0.05:
            return None
        if kind < 0.1:
            return b""
        length = self._random.randrange(2000, 6000) if kind > 0.98 else self._random.randrange(20, 500)
        start = self._random.randrange(len(self._stock) - length)
        return self._stock[start : start + length]

    def _headers(self) -> Headers:
        kind = self._random.random()
        if kind < 0.6:
            return ()
        if kind < 0.7:
            return (("trace", None), ("trace", b""))
        return tuple(("trace", b"%d" % self._random.randrange(1000)) for _ in range(self._random.randrange(1, 4)))
