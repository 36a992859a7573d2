"""Find where two sequences that differ agree again: the smallest explanation of the difference. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from mirror_lib.features.verify.findings import DifferenceKind
from mirror_lib.records.varint import decode_varint

#: Records of each side that are considered for an explanation.
LOOK_AHEAD = 64


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened to the next records: `source` of the one side against `target` of the other."""

    kind: DifferenceKind
    source: int
    target: int


def explain(source: Sequence[Hashable], target: Sequence[Hashable]) -> Explanation:
    """Explain why the first elements are unequal; both sequences have at least one.

    A permutation comes first, since no record is lost by it. Then the explanation with the fewest records: altered
    ones, extra ones on the target, missing ones. Two elements in a row, or the end, must agree after them, so that
    repeated contents do not mislead. Without any explanation all elements count as altered.
    """
    shuffled = _permutation(source, target)
    if shuffled:
        return Explanation(DifferenceKind.REORDERED, shuffled, shuffled)
    shorter = min(len(source), len(target))
    for count in range(1, max(len(source), len(target)) + 1):
        if count <= shorter and _meet(source, count, target, count):
            return Explanation(DifferenceKind.ALTERED, count, count)
        if count < len(target) and _meet(source, 0, target, count):
            return Explanation(DifferenceKind.EXTRA, 0, count)
        if count < len(source) and _meet(source, count, target, 0):
            return Explanation(DifferenceKind.MISSING, count, 0)
    return Explanation(DifferenceKind.ALTERED, shorter, shorter)


def _meet(source: Sequence[Hashable], i: int, target: Sequence[Hashable], j: int) -> bool:
    """Return True if both sides agree from here: two elements, or up to the end of one of them."""
    mine, theirs = source[i : i + 2], target[j : j + 2]
    if not mine or not theirs:
        return not mine and not theirs
    shorter = min(len(mine), len(theirs))
    return list(mine[:shorter]) == list(theirs[:shorter])


def _permutation(source: Sequence[Hashable], target: Sequence[Hashable]) -> int:
    """The smallest number of elements that are the same on both sides, in another order; 0 when there is none."""
    balance: dict[Hashable, int] = {}
    uneven = 0
    for count, (mine, theirs) in enumerate(zip(source, target, strict=False), start=1):
        for element, step in ((mine, 1), (theirs, -1)):
            before = balance.get(element, 0)
            balance[element] = before + step
            uneven += (before + step != 0) - (before != 0)
        if not uneven:
            return count
    return 0


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
        raise ValueError("the record ends in the middle of a number") from error
    return key, value, tail[at:]


def _nullable(tail: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(tail, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(tail):
        raise ValueError("a field is longer than the record")
    return tail[position:end], end


def differing_parts(source: bytes, target: bytes, *, times_differ: bool) -> tuple[str, ...]:
    """Return the parts in which two records differ."""
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
    """Return 16 hexadecimal digits that identify key, value and headers."""
    return hashlib.sha256(tail).digest()[:_DIGEST_BYTES].hex()
