"""Protobuf's messages in columns and back."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow_values import array_of
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from mirror_lib.features.transforms.schemas.protobuf import ProtobufSchema
from mirror_lib.features.transforms.schemas.protobuf_columns import fill, protobuf_column

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


def through_column(made: Message, reader: type[Message] | None = None) -> tuple[dict[str, Any], Message]:
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

    row, again = through_column(made)

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

            row, again = through_column(made)

            assert row | {"by_name": dict(row["by_name"])} == content
            assert again == made


def test_fields_of_another_version_are_null_or_left_out() -> None:
    writing, reading = message(), message()
    add(writing, "kept", "INT32")
    add(writing, "gone", "INT32")
    add(reading, "kept", "INT32")
    add(reading, "added", "STRING")
    writer, reader = message_class(writing), message_class(reading)

    row, again = through_column(writer(kept=5, gone=6), reader)

    assert row == {"kept": 5, "added": None}
    assert again == reader(kept=5)


def test_types_that_no_column_can_have_are_refused() -> None:
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
