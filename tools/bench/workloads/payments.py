"""Payments as JSON: the input of the comparison's transforms, and the expected output.

A payment has a country, by which some are dropped, a card, which is masked, and a text that fills it up. About half of
it is noise, as in `tools.bench.workloads.payload`, so that lz4 leaves about half.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from typing import Any

_COUNTRIES = ("DE", "FR", "IT")
#: Payments of this country are dropped: a third of them.
LEFT_OUT = "FR"
#: Header of every payment that is dropped, for filters that check headers alone.
LEFT_OUT_HEADER = "blocked"
#: Replaces all but the last four digits of a card.
MASK = "************"
_CARD_DIGITS, _CARD_SHOWN = 16, 4
_CURRENCIES = ("EUR", "USD", "CHF", "GBP")
_STATES = ("created", "authorised", "captured", "settled", "refunded")
_WORDS = (
    "invoice", "voucher", "gift", "monthly", "renewal", "express", "standard", "parcel", "priority", "customer",
    "branch", "harbour", "airport", "terminal", "refund", "contract", "instalment", "deposit", "ticket", "annual",
)  # fmt: skip
#: Share of a value that is random text.
_RANDOM_SHARE = 0.4
#: The fields in their order, with their types in Spark.
SCHEMA = (
    "id BIGINT, at BIGINT, country STRING, card STRING, amount DOUBLE, currency STRING, state STRING, express BOOLEAN, "
    "token STRING, note STRING"
)

Fields = list[tuple[str, Any]]


class Payments:
    """An endless, seeded source of keys and values, with the members of `tools.bench.workloads.payload.Payloads`."""

    def __init__(self, seed: int, value_bytes: int) -> None:
        self._random = random.Random(seed)
        self._value_bytes = value_bytes
        self._prose = " ".join(self._random.choices(_WORDS, k=2_000 + value_bytes))

    def next(self) -> tuple[bytes, bytes]:
        """Return one key of 14 bytes and one value of exactly the given size."""
        number = self._random.randrange(10**10)
        return f"pay-{number:010d}".encode(), self._value(number)

    def headers(self, value: bytes) -> list[tuple[str, bytes]]:
        """Return the headers of a payment."""
        return [(LEFT_OUT_HEADER, b"1")] if not is_kept(value) else []

    def _value(self, number: int) -> bytes:
        chance = self._random
        noise_bytes = int(self._value_bytes * _RANDOM_SHARE)
        fields = {
            "id": number,
            "at": 1_700_000_000_000 + chance.randrange(10**10),
            "country": chance.choice(_COUNTRIES),
            "card": f"{chance.randrange(10**_CARD_DIGITS):0{_CARD_DIGITS}d}",
            "amount": chance.randrange(100, 1_000_000) / 100,
            "currency": chance.choice(_CURRENCIES),
            "state": chance.choice(_STATES),
            "express": chance.random() < 0.5,
            "token": base64.b64encode(chance.randbytes(noise_bytes))[:noise_bytes].decode(),
            "note": "",
        }
        text = _written(fields)
        left = self._value_bytes - len(text)
        if left < 0:
            raise ValueError(f"a payment has at least {len(text)} bytes, and {self._value_bytes} were asked for")
        start = chance.randrange(len(self._prose) - left)
        return (text[: -len('"}')] + self._prose[start : start + left] + '"}').encode()


def is_kept(value: bytes | None) -> bool:
    """Return True if the filter keeps a payment."""
    return value is not None and json.loads(value)["country"] != LEFT_OUT


def masked(fields: Fields) -> Fields:
    """Return the masked payment."""
    return [(name, MASK + text[-_CARD_SHOWN:] if name == "card" else text) for name, text in fields]


def fields_of(value: bytes | None) -> Fields:
    """Return the fields of a JSON object in their order; the format of numbers and blanks does not matter.

    Raises:
        ValueError: it is not an object.
    """
    found = json.loads(value or b"", object_pairs_hook=list)
    if not isinstance(found, list) or not all(isinstance(each, tuple) for each in found):
        raise ValueError("not a JSON object")
    return found


def _written(fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"))


def field_names() -> Sequence[str]:
    """Return the names of the fields in their order."""
    return [each.split()[0] for each in SCHEMA.split(", ")]
