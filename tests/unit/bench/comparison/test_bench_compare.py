"""Samples of a copy against its source."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tools.bench.comparison.samples import Record, count_differences, spots


def _record(offset: int, value: bytes = b"v") -> Record:
    return Record(offset, b"k", value, (1, 1000 + offset), ())


def test_equal_samples_do_not_differ() -> None:
    assert count_differences([_record(0), _record(1)], [_record(0), _record(1)]) == 0


def test_changed_missing_and_shifted_records_count() -> None:
    expected = [_record(0), _record(1), _record(2)]

    assert count_differences(expected, [_record(0), _record(1, b"x"), _record(2)]) == 1
    assert count_differences(expected, expected[:2]) == 1
    assert count_differences(expected, [_record(1), _record(2), _record(3)]) == 3


@given(st.integers(0, 10**7), st.integers(2, 6), st.integers(1, 100))
def test_spots_hold_the_first_and_the_last_record(records: int, count: int, length: int) -> None:
    chosen = spots(records, count, length)

    assert sum(map(len, chosen)) == min(records, count * length)
    if records:
        assert chosen[0].start == 0
        assert chosen[-1].stop == records
    assert all(left.stop <= right.start for left, right in pairwise(chosen))
