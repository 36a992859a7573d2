"""Avro's values in columns and back: no value changes on the way, whatever version wrote it.

Protobuf's messages in columns and back.
"""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow_values import array_of
from mirror_lib.features.transforms.schemas.avro import AvroSchema
from mirror_lib.features.transforms.schemas.avro_columns import avro_column
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from mirror_lib.features.transforms.schemas.protobuf import ProtobufSchema
from mirror_lib.features.transforms.schemas.protobuf_columns import fill, protobuf_column
from tests.support.records.avro_schemas import logical, record, schema, typed_values


def through_avro(ready: AvroSchema, value: Any, writer: AvroSchema | None = None) -> tuple[pa.Array, bytes]:
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

    _, payload = through_avro(ready, value)

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
    array, payload = through_avro(schema(kind), value)

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

        array, _ = through_avro(
            reader, {"a": 1, "old": 2, "gone": "x"}, schema(record("R", a="int", old="int", gone="string"))
        )

        assert array.to_pylist() == [{"a": 1.0, "b": "none", "c": None, "d": [1], "e": 2}]

    def test_given_a_field_without_a_default_then_older_values_are_refused(self) -> None:
        with pytest.raises(ValueError, match="the field b is missing, and has no default"):
            through_avro(schema(record("R", a="int", b="int")), {"a": 1}, schema(record("R", a="int")))

    def test_given_a_field_that_became_optional_then_both_ways_are_read(self) -> None:
        plain, optional = schema(record("R", a="int")), schema(record("R", a=["null", "int"]))

        assert through_avro(optional, {"a": 1}, plain)[0].to_pylist() == [{"a": 1}]
        assert through_avro(plain, {"a": 1}, optional)[0].to_pylist() == [{"a": 1}]


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


KINDS = FieldDescriptorProto
SCALARS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "INT32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "SINT64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "UINT32": (pa.int64(), st.integers(0, 2**32 - 1)),
    "FIXED64": (pa.decimal128(20, 0), st.integers(0, 2**64 - 1).map(Decimal)),
    "FLOAT": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "DOUBLE": (pa.float64(), st.floats(allow_nan=False)),
    "BOOL": (pa.bool_(), st.booleans()),
    "STRING": (pa.string(), st.text(max_size=5)),
    "BYTES": (pa.binary(), st.binary(max_size=5)),
}


def message_class(*messages: DescriptorProto) -> type[Message]:
    """The first of some messages of one file, which has an enum besides."""
    file = FileDescriptorProto(name="any.proto", package="p", syntax="proto3", message_type=messages)
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    return ProtobufSchema(base64.b64encode(file.SerializeToString()).decode()).message_class()


def message(name: str = "M") -> DescriptorProto:
    return DescriptorProto(name=name)


def add(
    to: DescriptorProto, name: str, kind: str, type_name: str = "", *, label: int = 1, optional: bool = False
) -> None:
    field = to.field.add(name=name, number=len(to.field) + 1, type=getattr(KINDS, f"TYPE_{kind}"), label=label)
    if type_name:
        field.type_name = f".p.{type_name}"
    if optional:
        field.proto3_optional = True
        field.oneof_index = len(to.oneof_decl)
        to.oneof_decl.add(name=f"_{name}")


def through_protobuf(made: Message, reader: type[Message] | None = None) -> tuple[dict[str, Any], Message]:
    """A message in its column, and the message that is made of it again."""
    column = protobuf_column(reader or type(made))
    array = array_of([column.out(made)], column.kind)
    array.validate(full=True)
    [row] = array.to_pylist()
    again = (reader or type(made))()
    fill(again, column.back(row))
    return row, again


@given(st.data(), st.sampled_from(sorted(SCALARS)))
def test_scalars_survive_a_column(data: st.DataObject, kind: str) -> None:
    described = message()
    add(described, "plain", kind)
    add(described, "chosen", kind, optional=True)
    add(described, "several", kind, label=3)
    found = message_class(described)
    type_, values = SCALARS[kind]
    content = {
        "plain": data.draw(values),
        "chosen": data.draw(st.none() | values),
        "several": data.draw(st.lists(values, max_size=3)),
    }
    made = found()
    fill(made, protobuf_column(found).back(content))

    row, again = through_protobuf(made)

    assert row == content
    assert again.SerializeToString(deterministic=True) == made.SerializeToString(deterministic=True)
    assert protobuf_column(found).kind.field("plain").type == type_


def _nested() -> type[Message]:
    outer, inner = message(), message("Inner")
    add(inner, "n", "INT32")
    add(outer, "one", "MESSAGE", "Inner")
    add(outer, "many", "MESSAGE", "Inner", label=3)
    add(outer, "state", "ENUM", "State")
    add(outer, "by_name", "MESSAGE", "M.ByNameEntry", label=3)
    entry = outer.nested_type.add(name="ByNameEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=KINDS.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=KINDS.TYPE_MESSAGE, label=1, type_name=".p.Inner")
    return message_class(outer, inner)


def test_messages_lists_maps_and_enums_survive_a_column(subtests: pytest.Subtests) -> None:
    for content in [
        {"one": None, "many": [], "state": "NEW", "by_name": {}},
        {"one": {"n": 0}, "many": [{"n": 1}, {"n": 0}], "state": "PAID", "by_name": {"a": {"n": 5}, "b": {"n": 0}}},
        {"one": {"n": 7}, "many": [], "state": "9", "by_name": {}},
    ]:
        with subtests.test(content=content):
            found = _nested()
            made = found()
            fill(made, protobuf_column(found).back(content | {"by_name": list(content["by_name"].items())}))

            row, again = through_protobuf(made)

            assert row | {"by_name": dict(row["by_name"])} == content
            assert again == made


def test_fields_of_another_version_are_null_or_left_out() -> None:
    writing, reading = message(), message()
    add(writing, "kept", "INT32")
    add(writing, "gone", "INT32")
    add(reading, "kept", "INT32")
    add(reading, "added", "STRING")
    writer, reader = message_class(writing), message_class(reading)

    row, again = through_protobuf(writer(kept=5, gone=6), reader)

    assert row == {"kept": 5, "added": None}
    assert again == reader(kept=5)


def test_messages_that_no_column_can_have_are_refused() -> None:
    node, empty = message(), message("Empty")
    add(node, "next", "MESSAGE", "M")

    for described in (node, empty):
        with pytest.raises(SchemaFormatError):
            protobuf_column(message_class(described))


def test_what_does_not_fit_is_refused(subtests: pytest.Subtests) -> None:
    for content, said in [
        ({"more": 1}, "has no field more"),
        ({"one": {"n": "text"}}, "the field n"),
        ({"one": {"n": 2**31}}, "2147483648"),
        ({"state": "SOLD"}, "not one of NEW, PAID"),
    ]:
        with subtests.test(said):
            found = _nested()

            with pytest.raises(ValueError, match=said):
                fill(found(), protobuf_column(found).back(content))
