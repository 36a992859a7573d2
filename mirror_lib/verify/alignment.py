"""Where two sequences that have just parted meet again: the smallest explanation of what happened in between. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from mirror_lib.verify.findings import DifferenceKind

#: Records of each side that are looked at for an explanation.
LOOK_AHEAD = 64


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of the next records: `source` of the one side against `target` of the other."""

    kind: DifferenceKind
    source: int
    target: int


def explain(source: Sequence[Hashable], target: Sequence[Hashable]) -> Explanation:
    """Explain why the first elements are unequal; both sequences have at least one.

    A permutation counts before all else, since it needs no record to be lost. Then whatever concerns the fewest
    records: altered ones, extra ones on the target, missing ones. Two elements in a row, or the end, must agree behind
    them, so that single repeated contents do not mislead. Without any explanation all that is shown counts as altered.
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
    """Whether both go on equally from here: two elements, or up to where one of them ends."""
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
