"""Record values that compress about like real ones: neither zeros nor pure noise.

Half of a typical JSON event repeats from record to record (field names, states, product names) and the rest is
identifiers and amounts. Values here are similar: a skeleton of words from a small vocabulary around random text.
"""

from __future__ import annotations

import base64
import random

_STATES = ("created", "reserved", "paid", "packed", "shipped", "delivered", "returned")
_WORDS = (
    "warehouse", "carrier", "express", "standard", "parcel", "pallet", "fragile", "invoice", "voucher", "gift",
    "north", "south", "harbour", "airport", "refrigerated", "signature", "customs", "cleared", "pending", "priority",
)  # fmt: skip
#: Share of a value that is random text; with it lz4 compresses full batches to about half their size.
_RANDOM_SHARE = 0.4


class Payloads:
    """An endless, seeded source of keys and values: the same seed gives the same bytes on every machine."""

    def __init__(self, seed: int, value_bytes: int) -> None:
        self._random = random.Random(seed)
        self._value_bytes = value_bytes
        #: Sentences are random slices of this text: choosing each word anew would cost more than sending it.
        self._prose = " ".join(self._random.choices(_WORDS, k=2_000 + value_bytes))

    def next(self) -> tuple[bytes, bytes]:
        """Return one key and one value of exactly the given size."""
        key = f"order-{self._random.randrange(10**8):08d}"
        return key.encode(), self._value(key)

    def headers(self, value: bytes) -> list[tuple[str, bytes]]:  # noqa: ARG002 - others have some
        """Return the headers of such a record: none."""
        return []

    def _value(self, key: str) -> bytes:
        size, chance = self._value_bytes, self._random
        noise_bytes = int(size * _RANDOM_SHARE)
        noise = base64.b64encode(chance.randbytes(noise_bytes))[:noise_bytes].decode()
        head = f'{{"id":"{key}","state":"{chance.choice(_STATES)}","token":"{noise}","note":"'
        start = chance.randrange(len(self._prose) - size)
        body = head + self._prose[start : start + size]
        return (body[: size - 2] + '"}').encode()
