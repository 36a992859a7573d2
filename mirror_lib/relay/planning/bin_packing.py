"""Dealing weights into bins so that the heaviest is as light as can be (multiprocessor scheduling). Pure.

Largest first, each to the lightest bin (Graham's LPT), leaves the heaviest bin no more than the last weight that went
there above the mean. Where all weights are small, as in flows of many partitions, nothing better is worth a thought.
Where a bin gets only a handful of large ones it may be a sixth too heavy; then weights are moved and exchanged, and of
few weights the possibilities are searched, both within bounds that keep a plan quick.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

#: Bins are good enough when the heaviest is so near the least that it can be.
_NEAR = 1.01
#: Of so many weights the possibilities are searched, in so many steps: some tenths of a second.
_SEARCHED_WEIGHTS, _SEARCH_STEPS = 24, 100_000
_EXCHANGES = 2_000


def deal(weights: Sequence[int], bins: int) -> list[list[int]]:
    """Which weights go to which bin, as indexes into `weights`; bins may stay empty when there are few weights.

    The same weights are always dealt in the same way.

    Args:
        weights: none below 0. Those that are equal are dealt in their order.
        bins: at least 1.
    """
    order = sorted(range(len(weights)), key=lambda index: (-weights[index], index))
    dealt = _largest_first(weights, order, bins)
    best = least_possible(weights, bins)
    if _heaviest(weights, dealt) > best * _NEAR:
        dealt = _exchange(weights, dealt, best)
        if _heaviest(weights, dealt) > best * _NEAR and len(weights) <= _SEARCHED_WEIGHTS:
            dealt = _search(weights, order, dealt, best)
    return dealt


def least_possible(weights: Sequence[int], bins: int) -> float:
    """No way of dealing makes the heaviest bin lighter than this: the mean, the largest weight, or two that must share.

    When the `bins + 1` largest are dealt, some bin has two of them.
    """
    largest = heapq.nlargest(bins + 1, weights)
    shared = largest[-1] + largest[-2] if len(largest) > bins else 0
    return max(sum(weights) / bins, largest[0] if largest else 0, shared)


def _largest_first(weights: Sequence[int], order: Sequence[int], bins: int) -> list[list[int]]:
    dealt: list[list[int]] = [[] for _ in range(bins)]
    lightest = [(0, number) for number in range(bins)]
    for index in order:
        load, number = lightest[0]
        dealt[number].append(index)
        heapq.heapreplace(lightest, (load + weights[index], number))
    return dealt


def _heaviest(weights: Sequence[int], dealt: Sequence[Sequence[int]]) -> int:
    return max((sum(weights[index] for index in bin_) for bin_ in dealt), default=0)


def _exchange(weights: Sequence[int], dealt: list[list[int]], best: float) -> list[list[int]]:
    """Make the heaviest bin lighter as long as one of its weights can be moved, or exchanged for a smaller one."""
    bins = [sorted((weights[index], index) for index in bin_) for bin_ in dealt]
    loads = [sum(weight for weight, _ in bin_) for bin_ in bins]
    for _ in range(_EXCHANGES):
        heavy = max(range(len(bins)), key=loads.__getitem__)
        if loads[heavy] <= best * _NEAR:
            break
        for light in sorted(range(len(bins)), key=loads.__getitem__):
            found = _best_exchange(bins[heavy], bins[light], loads[heavy] - loads[light])
            if found is None:
                continue
            given, taken = found
            bins[heavy].remove(given)
            insort(bins[light], given)
            if taken is not None:
                bins[light].remove(taken)
                insort(bins[heavy], taken)
            passed = given[0] - (taken[0] if taken else 0)
            loads[heavy] -= passed
            loads[light] += passed
            break
        else:
            break
    return [[index for _, index in bin_] for bin_ in bins]


def _best_exchange(
    heavy: Sequence[tuple[int, int]], light: Sequence[tuple[int, int]], difference: int
) -> tuple[tuple[int, int], tuple[int, int] | None] | None:
    """What to give for what, so that the heavier of two bins gets lightest; None where nothing makes it lighter.

    Passing half of the difference would make both equal.
    """
    found: tuple[tuple[int, int], tuple[int, int] | None] | None = None
    nearest = difference
    for given in heavy:
        place = bisect_left(light, (given[0] - difference / 2, -1))
        for taken in (None, *light[max(place - 1, 0) : place + 1]):
            passed = given[0] - (taken[0] if taken else 0)
            # Twice the distance from the half; nothing or all of the difference only changes the roles.
            distance = abs(2 * passed - difference)
            if distance < nearest:
                nearest, found = distance, (given, taken)
    return found


def _search(weights: Sequence[int], order: Sequence[int], dealt: list[list[int]], best: float) -> list[list[int]]:
    """The best of all ways of dealing, or of those that can be tried in time: depth first, the lightest bin first."""
    loads = [0] * len(dealt)
    placed = [0] * len(order)
    heaviest = _heaviest(weights, dealt)
    steps = 0

    def choices() -> Iterator[int]:
        # Of bins with the same load one is enough.
        seen: set[int] = set()
        for number in sorted(range(len(loads)), key=loads.__getitem__):
            if loads[number] not in seen:
                seen.add(loads[number])
                yield number

    open_choices = [choices()]
    while open_choices and heaviest > best and steps < _SEARCH_STEPS:
        depth = len(open_choices) - 1
        if depth == len(order):
            # Every bin is lighter than the heaviest was so far.
            heaviest = max(loads)
            dealt = [[order[at] for at in range(depth) if placed[at] == number] for number in range(len(loads))]
            open_choices.pop()
            loads[placed[depth - 1]] -= weights[order[depth - 1]]
            continue
        weight = weights[order[depth]]
        for number in open_choices[-1]:
            steps += 1
            if loads[number] + weight < heaviest:
                placed[depth] = number
                loads[number] += weight
                open_choices.append(choices())
                break
        else:
            open_choices.pop()
            if depth:
                loads[placed[depth - 1]] -= weights[order[depth - 1]]
    return dealt
