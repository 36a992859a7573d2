"""Protobuf payloads by compiled schemas of a registry. Bytes are those of Protobuf's encoding guide."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.schemas.errors import SchemaFormatError, SchemaMissingError
from mirror_lib.features.transforms.schemas.model import Schema, SchemaReference, SchemaType
from mirror_lib.features.transforms.schemas.protobuf import ProtobufCodec, ProtobufSchema
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.wire import frame_bytes

INT32, INT64, STRING, MESSAGE, BYTES = (
    getattr(FieldDescriptorProto, f"TYPE_{name}") for name in ("INT32", "INT64", "STRING", "MESSAGE", "BYTES")
)


def file(package: str = "shop", *, imports: tuple[str, ...] = ()) -> FileDescriptorProto:
    return FileDescriptorProto(name="any.proto", package=package, syntax="proto3", dependency=imports)


def add_field(
    message: DescriptorProto, name: str, number: int, kind: int, type_name: str = "", *, repeated: bool = False
) -> None:
    label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    message.field.add(name=name, number=number, type=kind, label=label, type_name=type_name or None)


def in_base64(built: FileDescriptorProto) -> str:
    return base64.b64encode(built.SerializeToString()).decode()


def orders() -> FileDescriptorProto:
    """Two message types: `Other`, and `Order` with a nested `Line`."""
    built = file()
    add_field(built.message_type.add(name="Other"), "name", 1, STRING)
    order = built.message_type.add(name="Order")
    add_field(order, "count", 1, INT32)
    add_field(order, "for_whom", 2, STRING)
    add_field(order.nested_type.add(name="Line"), "sku", 1, INT64)
    add_field(order, "lines", 3, MESSAGE, ".shop.Order.Line", repeated=True)
    return built


ORDER, LINE = (1,), (1, 0)


class TestMessages:
    def test_given_the_example_of_the_guide_then_its_bytes_are_read_and_written(self) -> None:
        ready = ProtobufSchema(in_base64(orders()))

        message = ready.decode(b"\x08\x96\x01", ORDER)

        assert ready.to_json(message) == {"count": 150}
        assert ready.encode(message) == b"\x08\x96\x01"

    def test_given_message_indexes_then_they_lead_to_nested_types_or_are_refused(
        self, subtests: pytest.Subtests
    ) -> None:
        ready = ProtobufSchema(in_base64(orders()))

        assert ready.message_class(LINE).DESCRIPTOR.full_name == "shop.Order.Line"
        assert ready.message_class().DESCRIPTOR.full_name == "shop.Other"

        for indexes in [(2,), (0, 0), (1, 1), (-1,)]:
            with subtests.test(indexes=indexes), pytest.raises(SchemaFormatError, match="no message type"):
                ProtobufSchema(in_base64(orders())).decode(b"", indexes)

    def test_given_fields_then_json_calls_them_as_the_schema_does(self) -> None:
        ready = ProtobufSchema(in_base64(orders()))
        value = {"count": 1, "for_whom": "me", "lines": [{"sku": "9007199254740993"}]}

        message = ready.from_json(value, ORDER)

        assert ready.to_json(message) == value
        assert ready.to_json(ready.decode(ready.encode(message), ORDER)) == value

    def test_given_a_field_that_the_schema_does_not_know_then_it_stays_in_the_message_and_is_refused_as_json(
        self,
    ) -> None:
        ready = ProtobufSchema(in_base64(orders()))
        # The field 15, and the same in a nested message.
        for payload in (b"\x08\x01\x78\x07", b"\x1a\x02\x78\x07"):
            message = ready.decode(payload, ORDER)

            assert ready.encode(message) == payload
            with pytest.raises(SchemaFormatError, match="would lose them"):
                ready.to_json(message)

    def test_given_bytes_or_json_of_something_else_then_they_are_refused(self, subtests: pytest.Subtests) -> None:
        for payload in [b"\x08", b"\x0a\x05a", b"\x07"]:
            with subtests.test(payload=payload), pytest.raises(SchemaFormatError, match="does not match the schema"):
                ProtobufSchema(in_base64(orders())).decode(payload, ORDER)

        for value in [{"nonesuch": 1}, {"count": "x"}, {"count": 2**31}, [], None, 7]:
            with subtests.test(value=value), pytest.raises(SchemaFormatError):
                ProtobufSchema(in_base64(orders())).from_json(value, ORDER)

    @given(st.integers(-(2**31), 2**31 - 1), st.text(), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4))
    def test_given_any_message_then_it_survives_bytes_and_json(self, count: int, whom: str, skus: list[int]) -> None:
        ready = ProtobufSchema(in_base64(orders()))
        made = ready.message_class(ORDER)(count=count, for_whom=whom, lines=[{"sku": each} for each in skus])

        payload = ready.encode(made)

        assert ready.decode(payload, ORDER) == made
        assert ready.encode(ready.from_json(ready.to_json(made), ORDER)) == payload


class TestImports:
    def test_given_what_comes_with_protobuf_or_confluents_registry_then_it_needs_no_reference(self) -> None:
        built = file(imports=("google/protobuf/timestamp.proto",))
        add_field(built.message_type.add(name="R"), "at", 1, MESSAGE, ".google.protobuf.Timestamp")

        message = ProtobufSchema(in_base64(built)).decode(b"\x0a\x02\x08\x01")

        assert ProtobufSchema(in_base64(built)).to_json(message) == {"at": "1970-01-01T00:00:01Z"}

        built = file(imports=("confluent/meta.proto", "confluent/type/decimal.proto"))
        add_field(built.message_type.add(name="R"), "price", 1, MESSAGE, ".confluent.type.Decimal")
        ready = ProtobufSchema(in_base64(built))

        # value 5, scale 2
        assert ready.to_json(ready.decode(b"\x0a\x05\x0a\x01\x05\x18\x02")) == {"price": {"value": "BQ==", "scale": 2}}

    def test_given_an_import_without_a_reference_then_it_is_named(self) -> None:
        for name in ("mine.proto", "google/none.proto"):
            with pytest.raises(SchemaFormatError, match=f"the import {name}"):
                ProtobufSchema(in_base64(file(imports=(name,))))

    def test_given_no_descriptor_then_there_is_no_message_type_in_it(self, subtests: pytest.Subtests) -> None:
        for text in ["", "%", 'syntax = "proto3";', base64.b64encode(b"\xff").decode()]:
            with subtests.test(text), pytest.raises(SchemaFormatError):
                ProtobufSchema(text).decode(b"")


class TestCodec:
    def test_given_a_framed_message_then_its_schema_comes_from_the_registry(self, registry: SchemaRegistry) -> None:
        number = registry.register("a", Schema(SchemaType.PROTOBUF, in_base64(orders())))
        codec = ProtobufCodec(registry)
        framed = frame_bytes(number, ORDER) + b"\x08\x96\x01"

        assert codec.to_json(framed) == {"count": 150}
        assert codec.from_json(number, {"count": 150}, ORDER) == framed
        assert codec.encode(number, codec.decode(framed), ORDER) == framed
        assert codec.schema(number) is codec.schema(number)

    def test_given_imported_schemas_then_they_come_along_at_any_depth(self, registry: SchemaRegistry) -> None:
        leaf = file("leaf")
        add_field(leaf.message_type.add(name="Leaf"), "name", 1, STRING)
        registry.register("leaf", Schema(SchemaType.PROTOBUF, in_base64(leaf)))
        middle = file("middle", imports=("leaf.proto",))
        add_field(middle.message_type.add(name="Middle"), "leaf", 1, MESSAGE, ".leaf.Leaf")
        imports_leaf = (SchemaReference("leaf.proto", "leaf", 1),)
        registry.register("middle", Schema(SchemaType.PROTOBUF, in_base64(middle), imports_leaf))
        outer = file("outer", imports=("middle.proto",))
        add_field(outer.message_type.add(name="Outer"), "middle", 1, MESSAGE, ".middle.Middle")
        imports_middle = (SchemaReference("middle.proto", "middle", 1),)
        number = registry.register("outer", Schema(SchemaType.PROTOBUF, in_base64(outer), imports_middle))
        value = {"middle": {"leaf": {"name": "x"}}}

        framed = ProtobufCodec(registry).from_json(number, value)

        assert ProtobufCodec(registry).to_json(framed) == value

    def test_given_no_frame_an_unknown_id_or_another_language_then_it_is_refused(
        self, registry: SchemaRegistry, subtests: pytest.Subtests
    ) -> None:
        avro = registry.register("a", Schema(SchemaType.AVRO, '"string"'))
        no_frame = "does not start with a schema id and message indexes"
        for value, error, message in [
            (b"text", SchemaFormatError, no_frame),
            (frame_bytes(7), SchemaFormatError, no_frame),
            (frame_bytes(7, (0,)), SchemaMissingError, None),
            (frame_bytes(avro, (0,)), SchemaFormatError, "AVRO, not PROTOBUF"),
        ]:
            with subtests.test(value=value), pytest.raises(error, match=message):
                ProtobufCodec(registry).decode(value)
