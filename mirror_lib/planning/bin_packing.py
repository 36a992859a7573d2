"""Pack weights into bins so that the heaviest bin is as light as possible (multiprocessor scheduling). Pure.

Largest first, each to the lightest bin (Graham's LPT), leaves the heaviest bin at most its last weight above the mean.
If all weights are small, as in flows of many partitions, nothing better is needed. If a bin gets only a handful of
large ones it may be a sixth too heavy; then weights are moved and exchanged, and for few weights the assignments are
searched, both within bounds that keep planning fast.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

#: Bins are good enough if the heaviest is within this factor of the lower bound.
_NEAR = 1.01
#: Maximum number of weights for which assignments are searched, and of steps: some tenths of a second.
_SEARCHED_WEIGHTS, _SEARCH_STEPS = 24, 100_000
_EXCHANGES = 2_000


def pack_bins(weights: Sequence[int], bins: int) -> list[list[int]]:
    """Return the weights of each bin, as indexes into `weights`; bins may stay empty if there are few weights.

    The result is deterministic.

    Args:
        weights: at least 0. Equal weights are assigned in their order.
        bins: at least 1.
    """
    order = sorted(range(len(weights)), key=lambda index: (-weights[index], index))
    packing = _largest_first(weights, order, bins)
    best = least_possible(weights, bins)
    if _heaviest(weights, packing) > best * _NEAR:
        packing = _exchange(weights, packing, best)
        if _heaviest(weights, packing) > best * _NEAR and len(weights) <= _SEARCHED_WEIGHTS:
            packing = _search(weights, order, packing, best)
    return packing


def least_possible(weights: Sequence[int], bins: int) -> float:
    """Lower bound of the heaviest bin: the mean, the largest weight, or two weights that must share a bin.

    Of the `bins + 1` largest weights, some bin has two.
    """
    largest = heapq.nlargest(bins + 1, weights)
    shared = largest[-1] + largest[-2] if len(largest) > bins else 0
    return max(sum(weights) / bins, largest[0] if largest else 0, shared)


def _largest_first(weights: Sequence[int], order: Sequence[int], bins: int) -> list[list[int]]:
    packing: list[list[int]] = [[] for _ in range(bins)]
    lightest = [(0, number) for number in range(bins)]
    for index in order:
        load, number = lightest[0]
        packing[number].append(index)
        heapq.heapreplace(lightest, (load + weights[index], number))
    return packing


def _heaviest(weights: Sequence[int], packing: Sequence[Sequence[int]]) -> int:
    return max((sum(weights[index] for index in bin_) for bin_ in packing), default=0)


def _exchange(weights: Sequence[int], packing: list[list[int]], best: float) -> list[list[int]]:
    """Make the heaviest bin lighter while one of its weights can be moved, or exchanged for a smaller one."""
    bins = [sorted((weights[index], index) for index in bin_) for bin_ in packing]
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
    """The exchange that makes the heavier of two bins lightest; None if none makes it lighter.

    Moving half of the difference would make both equal.
    """
    found: tuple[tuple[int, int], tuple[int, int] | None] | None = None
    nearest = difference
    for given in heavy:
        place = bisect_left(light, (given[0] - difference / 2, -1))
        for taken in (None, *light[max(place - 1, 0) : place + 1]):
            passed = given[0] - (taken[0] if taken else 0)
            # Twice the distance from the half; moving nothing or all of the difference only swaps the bins.
            distance = abs(2 * passed - difference)
            if distance < nearest:
                nearest, found = distance, (given, taken)
    return found


def _search(weights: Sequence[int], order: Sequence[int], packing: list[list[int]], best: float) -> list[list[int]]:
    """The best assignment, or the best one found in time: depth first, the lightest bin first."""
    loads = [0] * len(packing)
    placed = [0] * len(order)
    heaviest = _heaviest(weights, packing)
    steps = 0

    def choices() -> Iterator[int]:
        # Bins with equal load are equivalent: try one.
        seen: set[int] = set()
        for number in sorted(range(len(loads)), key=loads.__getitem__):
            if loads[number] not in seen:
                seen.add(loads[number])
                yield number

    open_choices = [choices()]
    while open_choices and heaviest > best and steps < _SEARCH_STEPS:
        depth = len(open_choices) - 1
        if depth == len(order):
            # Every bin is lighter than the heaviest of the best assignment so far.
            heaviest = max(loads)
            packing = [[order[at] for at in range(depth) if placed[at] == number] for number in range(len(loads))]
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
    return packing
