"""Places at which the next records of two logs are equal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_lib.features.verify.compare.side import REPLACED, Side

#: What must be equal of two records: the bytes after their deltas on the wire, and their timestamp.
Token = tuple[bytes, int]
#: Equal records in a row from which on both logs agree again.
CERTAIN = 2


class Sought:
    """The next records of one side, which are searched for in the other one."""

    def __init__(self, tails: Sequence[bytes]) -> None:
        self._tails = tails
        self._places: dict[bytes, int] = {}
        for place, tail in enumerate(tails):
            self._places.setdefault(tail, place)

    def find(self, tails: Sequence[bytes], *, is_whole: bool) -> tuple[int, int | None]:
        """Return how many records to pass, and the place of the record that follows among those sought, if it is there.

        Args:
            tails: the next records of the log that is searched.
            is_whole: whether no records follow them.
        """
        for passed, tail in enumerate(tails):
            place = self._places.get(tail)
            if place is None:
                continue
            if passed and not is_whole and passed + CERTAIN > len(tails):
                # What follows it is not read yet.
                return passed, None
            if agree(tails, passed, self._tails, place):
                return passed, place
        return len(tails), None


def windows(source: Side, target: Side, look: int) -> tuple[list[Token], list[Token]]:
    """Return the next records of both sides, as what must be equal."""
    found = []
    for side in (source, target):
        count = side.visible(min(look, side.pending_records))
        found.append((side.tails[side.at : side.at + count], side.times[side.at : side.at + count]))
    (mine, my_times), (theirs, their_times) = found
    if REPLACED in their_times:
        my_times, their_times = [REPLACED] * len(mine), [REPLACED] * len(theirs)
    return list(zip(mine, my_times, strict=True)), list(zip(theirs, their_times, strict=True))


def nearest(
    source: Sequence[object], target: Sequence[object], *, certain: int = CERTAIN, to_an_end: bool = False
) -> tuple[int, int] | None:
    """Return the number of records of each side before the nearest place at which both agree.

    Args:
        to_an_end: also with fewer equal records at the end of one side, which prove less.
    """
    places: dict[object, list[int]] = {}
    for place, token in enumerate(source):
        places.setdefault(token, []).append(place)
    best: tuple[int, int] | None = None
    for there, token in enumerate(target):
        if best is not None and there >= sum(best):
            break
        for here in places.get(token, ()):
            left = len(source) - here, len(target) - there
            if (to_an_end or min(left) >= certain or left[0] == left[1]) and (
                (best is None or here + there < sum(best)) and agree(source, here, target, there, certain)
            ):
                best = here, there
    return best


def agree(source: Sequence[object], here: int, target: Sequence[object], there: int, certain: int = CERTAIN) -> bool:
    """Return True if both sides agree from here: `certain` records, or up to the end of one side."""
    mine, theirs = source[here : here + certain], target[there : there + certain]
    shorter = min(len(mine), len(theirs))
    return mine[:shorter] == theirs[:shorter]


def equal_ahead(source: Side, target: Side, count: int) -> int:
    """Return how many of the next `count` records are equal, by halves of whole lists."""
    equal = 0
    while count:
        if _are_equal(source, source.at + equal, target, target.at + equal, count):
            equal += count
            break
        if count == 1:
            break
        half = count // 2
        if _are_equal(source, source.at + equal, target, target.at + equal, half):
            equal += half
            count -= half
        else:
            count = half
    return equal


def _are_equal(source: Side, i: int, target: Side, j: int, count: int) -> bool:
    if source.tails[i : i + count] != target.tails[j : j + count]:
        return False
    mine, theirs = source.times[i : i + count], target.times[j : j + count]
    return mine == theirs or all(b in (REPLACED, a) for a, b in zip(mine, theirs, strict=True))
