"""What two records differ in, told without showing what is in them."""

from __future__ import annotations

import hashlib

from mirror_lib.cluster.batches.varint import decode_varint

_DIGEST_BYTES = 8
_PARTS = ("key", "value", "headers")


def parts(tail: bytes) -> tuple[bytes | None, bytes | None, bytes]:
    """Key, value and the encoded headers of a record, from what follows its deltas on the wire (KIP-98).

    Raises:
        ValueError: the bytes are no record.
    """
    try:
        key, at = _nullable(tail, 0)
        value, at = _nullable(tail, at)
    except IndexError as error:
        raise ValueError("the record ends inside a number") from error
    return key, value, tail[at:]


def _nullable(tail: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(tail, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(tail):
        raise ValueError("a part is longer than the record")
    return tail[position:end], end


def differing(source: bytes, target: bytes, *, times_differ: bool) -> tuple[str, ...]:
    """Which parts of two records are unequal."""
    try:
        pairs = zip(_PARTS, parts(source), parts(target), strict=True)
        found = [name for name, mine, theirs in pairs if mine != theirs]
    except ValueError:
        found = []
    if not found and source != target:
        # Other encodings of the same lengths: no client writes them, and a reader sees no difference in the parts.
        found = ["encoding"]
    return (*found, "timestamp") if times_differ else tuple(found)


def short_digest(tail: bytes) -> str:
    """Sixteen hexadecimal digits that stand for key, value and headers."""
    return hashlib.sha256(tail).digest()[:_DIGEST_BYTES].hex()
