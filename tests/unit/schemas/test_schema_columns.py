"""Schema ids of whole columns: by definition the same as value by value."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.schemas.columns import schema_ids, with_schema_ids
from mirror_lib.schemas.wire import LARGEST_ID, frame_bytes, schema_id, with_schema_id

#: Few ids, so that mappings meet them, and the outermost ones.
ids = st.sampled_from([1, 2, 3, 255, 256, 65_536, 2**24, LARGEST_ID])
framed = st.builds(lambda number, payload: frame_bytes(number) + payload, ids, st.binary(max_size=12))
nearly = st.binary(max_size=8).map(lambda rest: b"\x00" + rest)
values = st.none() | framed | nearly | st.binary(max_size=12)
mappings = st.dictionaries(ids, ids)
kinds = st.sampled_from([pa.binary(), pa.large_binary()])


@st.composite
def columns(draw: st.DrawFn) -> pa.BinaryArray:
    """Arrays, also such as are a slice of another one."""
    array = pa.array(draw(st.lists(values, max_size=12)), type=draw(kinds))
    begin = draw(st.integers(0, len(array)))
    return array.slice(begin, draw(st.integers(0, len(array) - begin)))


@given(columns())
def test_the_ids_of_a_column_are_those_of_its_values(column: pa.BinaryArray) -> None:
    found = schema_ids(column)

    found.validate(full=True)
    assert found.type == pa.int32()
    assert found.to_pylist() == [schema_id(value) for value in column.to_pylist()]


@given(columns(), mappings)
def test_replacing_in_a_column_is_replacing_in_its_values(column: pa.BinaryArray, mapping: dict[int, int]) -> None:
    before = column.to_pylist()

    replaced = with_schema_ids(column, mapping)

    replaced.validate(full=True)
    assert replaced.type == column.type
    assert replaced.to_pylist() == [_replaced(value, mapping) for value in before]
    assert column.to_pylist() == before


def _replaced(value: bytes | None, mapping: dict[int, int]) -> bytes | None:
    number = schema_id(value)
    return value if number is None else with_schema_id(value, mapping.get(number, number))


def test_ids_that_trade_places_do_not_meet() -> None:
    column = pa.array([frame_bytes(1), frame_bytes(2)], type=pa.binary())

    assert schema_ids(with_schema_ids(column, {1: 2, 2: 1})).to_pylist() == [2, 1]


def test_where_nothing_is_to_be_replaced_the_column_itself_comes_back() -> None:
    column = pa.array([frame_bytes(1), None, b"text"], type=pa.binary())

    assert with_schema_ids(column, {7: 8}) is column


def test_bytes_under_a_null_are_no_value() -> None:
    content, offsets = frame_bytes(1) * 2, pa.array([0, 5, 10], type=pa.int32()).buffers()[1]
    column = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x02"), offsets, pa.py_buffer(content)])

    assert schema_ids(column).to_pylist() == [None, 1]
    assert with_schema_ids(column, {1: 2}).to_pylist() == [None, frame_bytes(2)]


def test_a_replacement_that_is_no_id_is_refused_also_where_nothing_has_it() -> None:
    with pytest.raises(ValueError, match="is not a schema id"):
        with_schema_ids(pa.array([], type=pa.binary()), {1: 0})
