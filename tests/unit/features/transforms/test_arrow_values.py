"""Python values as Arrow arrays, against what Arrow itself makes of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow_values import array_of
from tests.support.fresh_imports import loaded_after

_SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(allow_nan=False, width=32)),
    (pa.string(), st.text(max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.decimal128(10, 2), st.decimals(-(10**7), 10**7, places=2)),
]


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def lists(of: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
        return pa.list_(of[0]), st.lists(st.none() | of[1], max_size=3)

    def maps(of: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
        return pa.map_(pa.string(), of[0]), st.dictionaries(st.text(max_size=3), st.none() | of[1], max_size=3)

    def structs(of: list[tuple[pa.DataType, Any]]) -> tuple[pa.DataType, Any]:
        fields = [pa.field(f"f{number}", kind) for number, (kind, _) in enumerate(of)]
        members = {f"f{number}": st.none() | values for number, (_, values) in enumerate(of)}
        return pa.struct(fields), st.fixed_dictionaries(members)

    return inner.map(lists) | inner.map(maps) | st.lists(inner, min_size=1, max_size=3).map(structs)


_types = st.recursive(st.sampled_from(_SCALARS), _nested, max_leaves=4)


@given(st.data())
def test_arrays_are_what_arrow_makes(data: st.DataObject) -> None:
    kind, values = data.draw(_types)
    given_values = data.draw(st.lists(st.none() | values, max_size=5))

    made = array_of(given_values, kind)

    made.validate(full=True)
    assert made.type == kind
    expected = pa.array(
        [list(each.items()) if pa.types.is_map(kind) and each is not None else each for each in given_values], kind
    )
    assert made.to_pylist() == expected.to_pylist()


def test_times_are_numbers_of_their_unit() -> None:
    kind = pa.timestamp("us", tz="UTC")

    assert array_of([5, None], kind) == pa.array([5, None], kind)
    assert array_of([-1, None], pa.date32()) == pa.array([-1, None], pa.date32())


def test_what_does_not_fit_and_other_types_are_refused(subtests: pytest.Subtests) -> None:
    for value, kind in [
        (2**31, pa.int32()),
        (Decimal("1.234"), pa.decimal128(10, 2)),
        (Decimal("NaN"), pa.decimal128(5, 0)),
    ]:
        with subtests.test(value=value), pytest.raises(ValueError):
            array_of([value], kind)

    with pytest.raises(TypeError, match="time64"):
        array_of([1], pa.time64("us"))


def test_pandas_is_not_loaded() -> None:
    script = (
        "import pyarrow as pa; from mirror_lib.features.transforms.arrow_values import array_of;"
        "array_of([{'a': [1, None], 'b': {'x': 'y'}}, None], pa.struct([('a', pa.list_(pa.int32())), "
        "('b', pa.map_(pa.string(), pa.string()))]))"
    )

    assert loaded_after(script, ["pandas"]) == []
