"""Rows put off until all rows of their record have come."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.copy.record_boundaries import WholeRecords
from mirror_lib.features.transforms.rows.columns import RowColumns, Slice
from mirror_lib.features.transforms.rows.layout import number_and_codec, place_of
from mirror_lib.records.header import Codec


def rows(offsets: list[int], names: list[bytes]) -> RowColumns:
    count = len(offsets)
    headers = pa.array([None] * count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    return RowColumns(
        pa.array([None] * count, pa.binary()),
        pa.array(names, pa.binary()),
        headers,
        pa.array([0] * count, pa.timestamp("us")),
        np.array(offsets, dtype=np.int64),
    )


def batch(number: int, offsets: list[int], topic: str | None = None) -> Slice:
    return Slice(place_of(number, Codec.NONE), rows(offsets, [b"%d" % each for each in offsets]), topic)


def offsets_of(slices: list[Slice]) -> list[int]:
    return [int(offset) for each in slices for offset in each.rows.offsets]


def test_given_rows_of_a_record_for_two_topics_then_neither_passes_before_the_next_record() -> None:
    whole = WholeRecords(lambda _: True)

    passed = list(whole.release([batch(0, [1, 3], "here"), batch(0, [2, 3], "there")]))

    assert sorted(offsets_of(passed)) == [1, 2]
    assert {each.topic for each in whole.rest()} == {"here", "there"}


def test_given_a_partition_to_which_it_does_not_apply_then_its_rows_pass_at_once() -> None:
    whole = WholeRecords(lambda number: number == 1)

    passed = list(whole.release([batch(0, [5]), batch(1, [5])]))

    assert [number_and_codec(each.place)[0] for each in passed] == [0]
    assert (whole.next_offset(0), whole.next_offset(1)) == (None, 5)


@given(st.data())
def test_given_any_batches_then_all_rows_pass_once_in_order_and_none_from_the_next_offset_on(
    data: st.DataObject,
) -> None:
    whole = WholeRecords(lambda _: True)
    given_rows: dict[int, list[int]] = {0: [], 1: []}
    passed: dict[int, list[int]] = {0: [], 1: []}

    def note(slices: list[Slice]) -> None:
        for each in slices:
            passed[number_and_codec(each.place)[0]] += [int(offset) for offset in each.rows.offsets]

    for _ in range(data.draw(st.integers(0, 8))):
        slices = []
        for number in data.draw(st.permutations([0, 1])):
            begin = given_rows[number][-1] if given_rows[number] else 0
            steps = data.draw(st.lists(st.integers(0, 2), max_size=5))
            offsets = [begin + sum(steps[: at + 1]) for at in range(len(steps))]
            if offsets:
                given_rows[number] += offsets
                slices.append(batch(number, offsets))
        note(list(whole.release(slices)))
        for number, offsets in passed.items():
            limit = whole.next_offset(number)
            assert all(limit is not None and offset < limit for offset in offsets)
            # All before it have passed.
            assert offsets == [offset for offset in given_rows[number] if limit is not None and offset < limit]

    note(list(whole.rest()))
    assert passed == given_rows
