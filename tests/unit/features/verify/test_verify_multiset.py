"""Heaps of records: the same whatever the order, another one with any change, loss or repetition."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.verify.routed.multiset import DIGEST_BYTES, Multiset, record_digests

KEY = b"any key"
#: A timestamp and what else a record is; few different ones, so that some are the same.
Row = tuple[int, bytes]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=2)), max_size=40)
ANY_ROWS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=40)), max_size=40)


def digests_of(rows: list[Row], key: bytes = KEY):  # type: ignore[no-untyped-def]
    return record_digests(key, [time for time, _ in rows], [tail for _, tail in rows])


def heap(rows: list[Row], key: bytes = KEY) -> Multiset:
    found = Multiset()
    found.add(digests_of(rows, key))
    return found


def digest(row: Row) -> bytes:
    return digests_of([row]).tobytes()


@given(rows=ANY_ROWS, order=st.randoms(use_true_random=False), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_neither_the_order_nor_who_sums_up_which_part_matters(
    rows: list[Row], order: random.Random, cuts: list[int]
) -> None:
    shuffled = order.sample(rows, len(rows))
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [heap(shuffled[first:stop]) for first, stop in pairwise(edges)]

    together = Multiset()
    for part in parts:
        together = together.plus(part)

    assert together.same_as(heap(rows))
    assert together.minus(heap(rows)).surplus() == ()


@given(mine=ROWS, theirs=ROWS)
def test_two_heaps_are_the_same_only_with_the_same_records_each_as_often(mine: list[Row], theirs: list[Row]) -> None:
    assert heap(mine).same_as(heap(theirs)) is (Counter(mine) == Counter(theirs))


@given(common=ANY_ROWS, mine=ROWS, theirs=ROWS)
def test_what_two_heaps_differ_in_comes_out_if_it_is_little(
    common: list[Row], mine: list[Row], theirs: list[Row]
) -> None:
    difference = heap([*common, *mine]).minus(heap([*common, *theirs]))

    expected = Counter({digest(row): count for row, count in Counter(mine).items()})
    expected.subtract(digest(row) for row in theirs)
    surplus = difference.surplus()
    # Some few records may hide each other whatever the size of the table; then it is said, and nothing wrong.
    assert surplus is None or {each.digest: each.times for each in surplus} == {
        name: times for name, times in expected.items() if times
    }


def test_tens_of_differences_among_many_records_can_nearly_always_be_told_apart() -> None:
    common = [(number, b"common") for number in range(5_000)]
    for count in (1, 10, 80):
        told = 0
        for attempt in range(20):
            missing = [(number, b"missing %d" % attempt) for number in range(count)]
            surplus = heap(common).minus(heap([*common, *missing])).surplus()
            told += surplus is not None and {each.digest for each in surplus} == {digest(row) for row in missing}

        assert told >= 16, count


def test_when_everything_differs_then_it_is_said_that_it_cannot_be_told_apart() -> None:
    mine = [(number, b"mine") for number in range(2_000)]
    theirs = [(number, b"theirs") for number in range(2_000)]

    assert heap(mine).minus(heap(theirs)).surplus() is None


@given(rows=ROWS.filter(bool))
def test_a_record_that_is_there_many_times_is_one_surplus(rows: list[Row]) -> None:
    surplus = heap([*rows, *[rows[0]] * 1_000]).minus(heap(rows)).surplus()

    assert surplus is not None
    assert [(each.digest, each.times) for each in surplus] == [(digest(rows[0]), 1_000)]


@given(rows=ROWS.filter(bool))
def test_without_timestamps_only_the_rest_counts(rows: list[Row]) -> None:
    tails = [tail for _, tail in rows]
    later = [(time + 4, tail) for time, tail in rows]
    untimed = Multiset()
    untimed.add(record_digests(KEY, None, tails))
    again = Multiset()
    again.add(record_digests(KEY, None, [tail for _, tail in later]))

    assert untimed.same_as(again)
    assert not heap(rows).same_as(heap(later))


def test_a_timestamp_and_what_follows_it_are_not_taken_for_one_another() -> None:
    assert digest((0, b"\0")) != digest((0, b""))
    assert len(digest((0, b""))) == DIGEST_BYTES


@given(rows=ROWS.filter(bool))
def test_under_another_key_the_same_records_have_other_digests(rows: list[Row]) -> None:
    assert heap(rows).total != heap(rows, b"another key").total
