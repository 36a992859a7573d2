"""The fast way of writing JSON, against the one that looks closely."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.smt.converters.json_data import value_to_json
from mirror_lib.features.transforms.smt.converters.json_text import read_json, schemaless_json, write_json
from mirror_lib.features.transforms.smt.model import ConverterSettings
from mirror_lib.features.transforms.smt.values.data import DataError, Float64, Int32, Value

SETTINGS = ConverterSettings("value.converter")
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_scalars |= st.floats(allow_nan=False, allow_infinity=False).map(lambda number: Float64(number, f"{number!r}0"))
_scalars |= st.integers(-(2**31), 2**31 - 1).map(Int32)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=10,
)


@given(_values)
def test_both_ways_write_the_same(value: Value) -> None:
    fast = schemaless_json(value)

    assert fast is None or fast == write_json(value_to_json(None, value, SETTINGS))


def test_what_records_usually_hold_goes_the_fast_way_and_nothing_else() -> None:
    for value in [{"a": [1, Float64(1.1, "1.10"), None, True, 'ä\n"']}, [], {}, "text"]:
        assert schemaless_json(value) == write_json(value), value

    for value in ["\x1f", "\U0001f600", "\ud800", {1: 2}, object()]:
        assert schemaless_json(value) is None, value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_blanks_and_marks_around_a_text_mean_nothing(value: Value) -> None:
    text = json.dumps(value)

    assert read_json(text.encode()) == read_json(f"\ufeff \n{text} ".encode()) == value


def test_numbers_have_at_most_a_thousand_digits(subtests: pytest.Subtests) -> None:
    for digits in [1000, 1001, 5000]:
        with subtests.test(digits=digits):
            text = b'{"n": ' + b"9" * digits + b"}"

            if digits <= 1000:
                assert read_json(text) == {"n": 10**digits - 1}
            else:
                with pytest.raises(DataError, match=f"a number has {digits} digits"):
                    read_json(text)
