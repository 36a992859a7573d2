"""Ignore headers that a replicator adds, such as Confluent Replicator's `__replicator_id`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from mirror_lib.features.verify.compare.realignment import parts
from mirror_lib.records.varint import decode_varint, encode_varint

#: Changes what follows a record's deltas on the wire (KIP-98).
Rewrite = Callable[[bytes], bytes]


def without_headers(names: Collection[str]) -> Rewrite | None:
    """Return the function that removes headers of these names; None without names."""
    return partial(_without, frozenset(name.encode() for name in names)) if names else None


def _without(names: frozenset[bytes], tail: bytes) -> bytes:
    try:
        headers = parts(tail)[2]
        kept = _kept(names, headers)
    except (ValueError, IndexError):
        # No client writes that; it is compared as it is.
        return tail
    return tail if kept is None else tail[: len(tail) - len(headers)] + kept


def _kept(names: frozenset[bytes], headers: bytes) -> bytes | None:
    """Return the encoded headers that are left; None if all are."""
    count, at = decode_varint(headers, 0)
    kept: list[bytes] = []
    for _ in range(count):
        start = at
        size, at = decode_varint(headers, at)
        name, at = headers[at : at + size], at + size
        size, at = decode_varint(headers, at)
        at += max(size, 0)
        if name not in names:
            kept.append(headers[start:at])
    return None if len(kept) == count else encode_varint(len(kept)) + b"".join(kept)
