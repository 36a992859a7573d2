"""Dealing weights into bins: nothing lost, nothing split, and the heaviest bin near the least that it can be."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.planning.bin_packing import least_possible, pack_bins


def loads(weights: Sequence[int], packing: Sequence[Sequence[int]]) -> list[int]:
    return [sum(weights[index] for index in bin_) for bin_ in packing]


def best_by_trying_all(weights: Sequence[int], bins: int) -> int:
    def heaviest(places: Sequence[int]) -> int:
        filled = [0] * bins
        for weight, place in zip(weights, places, strict=True):
            filled[place] += weight
        return max(filled)

    return min(heaviest(places) for places in product(range(bins), repeat=len(weights)))


@given(st.lists(st.integers(0, 10**9), max_size=200), st.integers(1, 20))
def test_every_weight_is_dealt_once(weights: list[int], bins: int) -> None:
    packing = pack_bins(weights, bins)

    assert len(packing) == bins
    assert sorted(index for bin_ in packing for index in bin_) == list(range(len(weights)))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(2, 3))
def test_of_few_weights_the_best_dealing_is_found(weights: list[int], bins: int) -> None:
    heaviest = max(loads(weights, pack_bins(weights, bins)))

    assert heaviest <= best_by_trying_all(weights, bins) * 1.01


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 3))
def test_the_least_possible_is_never_more_than_what_is_possible(weights: list[int], bins: int) -> None:
    assert least_possible(weights, bins) <= best_by_trying_all(weights, bins)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=120), st.integers(1, 16))
def test_the_heaviest_bin_is_never_heavier_than_dealing_the_largest_first_makes_it(
    weights: list[int], bins: int
) -> None:
    """Graham's bound: the mean of the others, and the last weight on top of it."""
    filled = [0] * bins
    for weight in sorted(weights, reverse=True):
        filled[filled.index(min(filled))] += weight

    assert max(loads(weights, pack_bins(weights, bins))) <= max(filled)


def test_given_more_weights_than_are_searched_when_two_are_exchanged_then_each_is_in_one_bin() -> None:
    chance = random.Random(62)
    weights = [chance.choice([3, 5, 7, 11, 40, 41, 97]) for _ in range(30)]
    largest_first = [0] * 7
    for weight in sorted(weights, reverse=True):
        largest_first[largest_first.index(min(largest_first))] += weight

    packing = pack_bins(weights, 7)

    assert max(loads(weights, packing)) < max(largest_first)
    assert sorted(index for bin_ in packing for index in bin_) == list(range(len(weights)))


def test_bytes_as_topics_have_them_are_within_a_twentieth_of_the_best(subtests: pytest.Subtests) -> None:
    """Zipf's law: a few partitions with much, many with little. Where one has more than a share, it decides."""
    for bins in (2, 4, 16, 64):
        for skew in (0.8, 1.1):
            with subtests.test(bins=bins, skew=skew):
                weights = [round(10**9 / place**skew) for place in range(1, 5_001)]
                random.Random(7).shuffle(weights)

                heaviest = max(loads(weights, pack_bins(weights, bins)))

                assert heaviest <= max(sum(weights) / bins, max(weights)) * 1.05


def test_the_same_weights_are_dealt_in_the_same_way() -> None:
    weights = [random.Random(3).randrange(1, 1_000) for _ in range(500)]

    assert pack_bins(weights, 7) == pack_bins(weights, 7)
