"""Avro's values in columns and back: no value changes on the way, whatever version wrote it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given

from mirror_lib.features.transforms.arrow_values import array_of
from mirror_lib.features.transforms.schemas.avro import AvroSchema
from mirror_lib.features.transforms.schemas.avro_columns import avro_column
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from tests.support.records.avro_schemas import logical, record, schema, typed_values


def through_column(ready: AvroSchema, value: Any, writer: AvroSchema | None = None) -> tuple[pa.Array, bytes]:
    """A value in the column of a schema, and the bytes that are made of it again."""
    column = avro_column(ready)
    decoded = (writer or ready).decode((writer or ready).encode(value))
    array = array_of([None if decoded is None else column.out(decoded)], column.kind)
    array.validate(full=True)
    [given_back] = array.to_pylist()
    return array, ready.encode(None if given_back is None else column.back(given_back))


@given(typed_values())
def test_any_value_survives_a_column(typed: tuple[Any, Any]) -> None:
    kind, value = typed
    ready = schema(kind)

    _, payload = through_column(ready, value)

    assert payload == ready.encode(value)


@pytest.mark.parametrize(
    ("kind", "value", "type_", "content"),
    [
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", pa.string(), "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", pa.binary(), b"ab"),
        (["int", "long"], 5, pa.int64(), 5),
        (["null", "float", "double"], 0.5, pa.float64(), 0.5),
        (logical("long", "timestamp-millis"), datetime(2026, 1, 2, 3, tzinfo=UTC), pa.timestamp("us", tz="UTC"),
         datetime(2026, 1, 2, 3, tzinfo=UTC)),
        (logical("int", "time-millis"), time(0, 0, 1), pa.int32(), 1000),
        (logical("int", "date"), date(1969, 12, 31), pa.date32(), date(1969, 12, 31)),
        (logical("bytes", "decimal", precision=5, scale=2), Decimal("-1.20"), pa.decimal128(5, 2), Decimal("-1.20")),
        (logical("fixed", "uuid", name="U", size=16), UUID(int=7), pa.string(), str(UUID(int=7))),
        (["null", "string", "long"], "x", pa.struct({"member0": pa.string(), "member1": pa.int64()}),
         {"member0": "x", "member1": None}),
        (["null", "string", "long"], None, pa.struct({"member0": pa.string(), "member1": pa.int64()}), None),
        ([record("A", a="int"), record("B", a="int")], ("B", {"a": 1}),
         pa.struct({"member0": pa.struct({"a": pa.int32()}), "member1": pa.struct({"a": pa.int32()})}),
         {"member0": None, "member1": {"a": 1}}),
    ],
)  # fmt: skip
def test_columns_have_the_types_of_spark(kind: Any, value: Any, type_: pa.DataType, content: Any) -> None:
    array, payload = through_column(schema(kind), value)

    assert array.type == type_
    assert array.to_pylist() == [content]
    assert schema(kind).decode(payload) == value


class TestVersions:
    def test_given_fields_of_another_version_then_defaults_are_taken_and_others_left_out(self) -> None:
        reader = schema({
            "type": "record", "name": "R", "fields": [
                {"name": "a", "type": "double"},
                {"name": "b", "type": ["string", "null"], "default": "none"},
                {"name": "c", "type": ["null", "string"], "default": None},
                {"name": "d", "type": {"type": "array", "items": "int"}, "default": [1]},
                {"name": "e", "type": "int", "aliases": ["old"]},
            ],
        })  # fmt: skip

        array, _ = through_column(
            reader, {"a": 1, "old": 2, "gone": "x"}, schema(record("R", a="int", old="int", gone="string"))
        )

        assert array.to_pylist() == [{"a": 1.0, "b": "none", "c": None, "d": [1], "e": 2}]

    def test_given_a_field_without_a_default_then_older_values_are_refused(self) -> None:
        with pytest.raises(ValueError, match="the field b is missing, and has no default"):
            through_column(schema(record("R", a="int", b="int")), {"a": 1}, schema(record("R", a="int")))

    def test_given_a_field_that_became_optional_then_both_ways_are_read(self) -> None:
        plain, optional = schema(record("R", a="int")), schema(record("R", a=["null", "int"]))

        assert through_column(optional, {"a": 1}, plain)[0].to_pylist() == [{"a": 1}]
        assert through_column(plain, {"a": 1}, optional)[0].to_pylist() == [{"a": 1}]


def test_types_that_no_column_can_have_are_refused(subtests: pytest.Subtests) -> None:
    for kind in [
        {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]},
        record("Empty"),
        logical("bytes", "decimal", precision=39, scale=2),
    ]:
        with subtests.test(kind=kind), pytest.raises(SchemaFormatError):
            avro_column(schema(kind))


def test_a_union_has_one_member(subtests: pytest.Subtests) -> None:
    for members in [{"member0": None, "member1": None}, {"member0": "x", "member1": 1}]:
        with subtests.test(members=members), pytest.raises(ValueError, match="but exactly one must be"):
            avro_column(schema(["null", "string", "long"])).back(members)


def test_required_fields_are_those_without_a_default() -> None:
    kind = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 1}],
    }

    assert avro_column(schema(kind)).required == {"a"}
