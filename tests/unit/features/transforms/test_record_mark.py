"""The mark by which a failure in Spark tells which record it speaks of."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ReplicationError, Where
from mirror_lib.features.transforms.record_mark import (
    RecordMark,
    UntransformableRecordError,
    mark,
    read_mark,
    refuse_record,
)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_a_mark_is_found_in_any_text(place: int, offset: int) -> None:
    text = f"An exception was thrown:\n  File x\nsome.Error: {mark(place, offset)} it is no JSON.\n\tat java"

    assert read_mark(text) == RecordMark(place, offset, "it is no JSON.")


def test_a_text_without_a_mark_or_with_odd_numbers_has_none() -> None:
    assert read_mark("[mirror-record place= offset=5] what") is None

    for number in ["9" * 5_000, "\u0663", "1e3", "+1"]:
        assert read_mark(f"[mirror-record place={number} offset=5] what") is None, number
        assert read_mark(f"[mirror-record place=0 offset={number}] what") is None, number


def test_a_refusal_says_which_record_and_what_is_wrong_for_any_exception() -> None:
    error = ReplicationError("it is\nno JSON.", action="Look at it.")

    with pytest.raises(UntransformableRecordError) as caught:
        refuse_record(error, 3, 1234, Where(topic="orders", partition=2, offset=1234))

    told = str(pickle.loads(pickle.dumps(caught.value)))
    assert read_mark(told) == RecordMark(
        3, 1234, "topic orders, partition 2, offset 1234: it is\\nno JSON. Look at it."
    )
    assert caught.value.reason == "transform"

    with pytest.raises(UntransformableRecordError, match=r"\] KeyError: 'country'"):
        refuse_record(KeyError("country"), 0, 1)
