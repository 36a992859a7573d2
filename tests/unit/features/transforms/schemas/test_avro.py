"""Avro payloads as Python values and as JSON, and back. Bytes are those of the Avro specification (1.12)."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_lib.features.transforms.schemas.avro import AvroCodec, AvroSchema
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError, SchemaMissingError
from mirror_lib.features.transforms.schemas.model import Schema, SchemaReference, SchemaType
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.wire import frame_bytes
from tests.support.records.avro_schemas import logical, record, schema, typed_values


class TestPayloads:
    def test_given_the_example_of_the_specification_then_its_bytes_are_read_and_written(self) -> None:
        ready = schema(record("test", a="long", b="string"))

        assert ready.decode(b"\x36\x06foo") == {"a": 27, "b": "foo"}
        assert ready.encode({"a": 27, "b": "foo"}) == b"\x36\x06foo"
        assert AvroSchema("string").decode(b"\x06foo") == "foo", "without quotes"

    def test_given_a_schema_that_is_no_record_then_it_is_read_and_written_too(self) -> None:
        for kind, payload, value in [
            ("string", b"\x06foo", "foo"),
            (["null", "string"], b"\x02\x02a", "a"),
            ({"type": "array", "items": "long"}, b"\x04\x06\x36\x00", [3, 27]),
            ({"type": "map", "values": "boolean"}, b"\x02\x02a\x01\x00", {"a": True}),
            ({"type": {"type": "string"}}, b"\x06foo", "foo"),
            ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02", "B"),
        ]:
            assert schema(kind).decode(payload) == value, kind
            assert schema(kind).encode(value) == payload, kind

    def test_given_a_recursive_schema_then_values_of_any_depth_pass(self) -> None:
        ready = schema(record("List", value="int", next=["null", "List"]))
        value = {"value": 1, "next": {"value": 2, "next": {"value": 3, "next": None}}}

        assert ready.decode(ready.encode(value)) == value
        assert ready.from_json(ready.to_json(value)) == value

    def test_given_a_record_nested_to_any_depth_then_it_is_read_or_refused(self, subtests: pytest.Subtests) -> None:
        for levels in [10, 100, 500, 5_000, 1_000_000]:
            with subtests.test(levels=levels):
                ready = schema(record("List", next=["null", "List"]))
                payload = b"\x02" * levels + b"\x00"

                if levels <= 100:
                    assert ready.encode(ready.decode(payload)) == payload
                elif levels >= 5_000:
                    with pytest.raises(SchemaFormatError, match="recursion"):
                        ready.decode(payload)
                else:
                    ready.decode(payload)

    def test_given_a_list_of_what_takes_no_bytes_then_the_schema_is_refused(self, subtests: pytest.Subtests) -> None:
        for items in [
            "null",
            record("R"),
            record("R", a=record("S", b="null")),
            {"type": "fixed", "name": "F", "size": 0},
        ]:
            with subtests.test(items=items), pytest.raises(SchemaFormatError, match="take no bytes"):
                schema(record("Outer", deep={"type": "map", "values": {"type": "array", "items": items}}))

    def test_given_bytes_of_something_else_then_they_are_refused(self, subtests: pytest.Subtests) -> None:
        for payload in [b"", b"\x36", b"\x36\x06fo", b"\x36\x06foo\x00", b"\x36\x02\xff"]:
            with subtests.test(payload=payload), pytest.raises(SchemaFormatError, match="the schema"):
                schema(record("test", a="long", b="string")).decode(payload)

    def test_given_a_value_that_is_not_of_the_schema_then_it_is_refused(self, subtests: pytest.Subtests) -> None:
        for value in [
            {"a": 1},
            {"a": 1, "b": "x", "c": 1},
            {"a": 2**31, "b": "x"},
            {"a": "1", "b": "x"},
            {"a": 1, "b": b"x"},
            None,
        ]:
            with subtests.test(value=value), pytest.raises(SchemaFormatError):
                schema(record("test", a="int", b="string")).encode(value)

        for kind, value in [
            ({"type": "array", "items": "string"}, "abc"),
            ("boolean", 1),
            ("long", True),
            ("float", 1e39),
            ("int", 1.0),
        ]:
            with subtests.test(kind=kind), pytest.raises(SchemaFormatError):
                schema(kind).encode(value)

    def test_given_a_default_then_its_field_may_be_left_out(self) -> None:
        with_default = record("test", a="long")
        with_default["fields"].append({"name": "b", "type": "string", "default": "foo"})
        with_default["fields"].append({"name": "c", "type": ["bytes", "null"], "default": "\u00ff"})
        with_default["fields"].append({"name": "d", "type": record("R", e=["null", "int"]), "default": {"e": None}})

        assert schema(with_default).encode({"a": 27}) == b"\x36\x06foo\x00\x02\xff\x00"
        # A wrong default in an old schema does not matter to readers.
        wrong_default = record("test", a="long")
        wrong_default["fields"].append({"name": "b", "type": ["string", "null"], "default": 7})
        assert schema(wrong_default).decode(b"\x36\x00\x06foo") == {"a": 27, "b": "foo"}

    def test_given_no_schema_then_it_is_refused(self, subtests: pytest.Subtests) -> None:
        for text in ["", "{", "{}", "[", '"nonesuch"', '{"type":"record","name":"R"}x', "7"]:
            with subtests.test(text), pytest.raises(SchemaFormatError):
                AvroSchema(text)


class TestUnions:
    def test_given_several_named_types_then_values_come_with_their_names(self) -> None:
        ready = schema([record("ns.R", a="int"), record("ns.S", a="int")])

        assert schema(["null", record("R", a="int")]).decode(b"\x02\x02") == {"a": 1}, "a single one is bare"
        assert ready.decode(b"\x02\x02") == ("ns.S", {"a": 1})
        assert ready.encode(("ns.S", {"a": 1})) == b"\x02\x02"

    def test_given_types_that_look_alike_then_a_value_stays_of_its_own_one(self) -> None:
        for union, payload in [
            ([{"type": "map", "values": "string"}, record("R", a="string")], b"\x02\x02x"),
            (["string", {"type": "enum", "name": "E", "symbols": ["A"]}], b"\x02\x00"),
            (["bytes", {"type": "fixed", "name": "F", "size": 2}], b"\x02ab"),
        ]:
            ready = schema(union)
            value = ready.decode(payload)

            assert ready.encode(value) == payload, union
            assert ready.encode(ready.from_json(json.loads(json.dumps(ready.to_json(value))))) == payload, union

    def test_given_several_enums_inside_another_union_then_names_are_understood_there(self) -> None:
        enums = [{"type": "enum", "name": name, "symbols": ["A", "B"]} for name in ("E", "F")]
        ready = schema(["null", record("R", a=enums)])
        value = {"a": ("F", "B")}

        assert ready.encode(value) == b"\x02\x02\x02"
        assert ready.decode(b"\x02\x02\x02") == value

    def test_given_a_named_type_that_is_used_again_then_its_name_is_the_full_one(self) -> None:
        ready = schema(record("ns.Outer", one=record("R", a="int"), any=["null", "R", record("S", a="int")]))
        value = {"one": {"a": 1}, "any": ("ns.R", {"a": 2})}

        assert ready.decode(ready.encode(value)) == value
        assert ready.to_json(value)["any"] == {"ns.R": {"a": 2}}


class TestLogicalTypes:
    def test_given_a_logical_type_then_it_is_pythons_own_and_goes_back_to_the_same_bytes(self) -> None:
        for kind, payload, value in [
            (logical("int", "date"), b"\x01", date(1969, 12, 31)),
            (logical("int", "time-millis"), b"\xd0\x0f", time(0, 0, 1)),
            (logical("long", "time-micros"), b"\x02", time(0, 0, 0, 1)),
            (logical("long", "timestamp-millis"), b"\x01", datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)),
            (logical("long", "timestamp-micros"), b"\x02", datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
            (logical("long", "local-timestamp-millis"), b"\xd0\x0f", datetime(1970, 1, 1, 0, 0, 1)),
            (logical("long", "local-timestamp-micros"), b"\x02", datetime(1970, 1, 1, 0, 0, 0, 1)),
            (logical("bytes", "decimal", precision=4, scale=2), b"\x04\x04\xd2", Decimal("12.34")),
            (logical("bytes", "decimal", precision=4), b"\x02\x80", Decimal(-128)),
            (logical("fixed", "decimal", name="D", size=3, precision=4, scale=2), b"\xff\xff\x85", Decimal("-1.23")),
            (
                logical("string", "uuid"),
                b"\x4889791762-2336-4186-9674-299b90a802e2",
                UUID("89791762-2336-4186-9674-299b90a802e2"),
            ),
            (logical("fixed", "uuid", name="U", size=16), bytes(range(16)), UUID(bytes=bytes(range(16)))),
        ]:
            ready = schema(kind)

            found = ready.decode(payload)

            assert found == value, kind
            assert type(found) is type(value), kind
            assert str(found) == str(value), kind
            assert ready.encode(value) == payload, kind
            assert ready.encode(ready.from_json(json.loads(json.dumps(ready.to_json(value))))) == payload, kind

    def test_given_what_pythons_type_cannot_hold_then_it_stays_as_it_is_written(self) -> None:
        for kind, written in [
            (logical("long", "timestamp-millis"), 2**62),
            (logical("long", "local-timestamp-micros"), -(2**63)),
            (logical("int", "date"), 2**31 - 1),
            (logical("int", "time-millis"), 86_400_000),
            (logical("long", "time-micros"), -1),
            (logical("bytes", "decimal", precision=4, scale=2), b""),
            (logical("string", "uuid"), "89791762233641869674299B90A802E2"),
            (logical("string", "uuid"), "none"),
        ]:
            bare = schema(kind["type"])
            payload = bare.encode(written)

            assert schema(kind).decode(payload) == written, kind
            assert schema(kind).encode(written) == payload, kind
            assert schema(kind).from_json(schema(kind).to_json(written)) == written, kind

    def test_given_a_logical_type_that_counts_for_nothing_then_numbers_are_numbers_and_bytes_bytes(self) -> None:
        for kind in [
            logical("long", "timestamp-nanos"),
            logical("long", "nonesuch"),
            logical("long", "decimal", precision=4),
        ]:
            assert schema(kind).decode(b"\x02") == 1, kind

        for attributes in [{}, {"precision": 0}, {"precision": 2, "scale": 3}, {"precision": "2"}]:
            assert schema(logical("bytes", "decimal", **attributes)).decode(b"\x02\x05") == b"\x05", attributes

    def test_given_a_value_that_would_lose_something_then_it_is_refused(self, subtests: pytest.Subtests) -> None:
        for kind, value in [
            (logical("long", "timestamp-millis"), datetime(2024, 1, 1)),
            (logical("long", "timestamp-millis"), datetime(2024, 1, 1, 0, 0, 0, 1, UTC)),
            (logical("long", "local-timestamp-millis"), datetime(2024, 1, 1, tzinfo=UTC)),
            (logical("int", "time-millis"), time(0, 0, 0, 1)),
            (logical("int", "time-millis"), time(0, tzinfo=UTC)),
            (logical("int", "date"), datetime(2024, 1, 1)),
            (logical("bytes", "decimal", precision=4, scale=2), Decimal("1.234")),
            (logical("bytes", "decimal", precision=4, scale=2), Decimal("123.45")),
            (logical("bytes", "decimal", precision=4, scale=2), Decimal("NaN")),
            (logical("bytes", "decimal", precision=4, scale=2), Decimal("1E+999999")),
            (logical("bytes", "decimal", precision=4, scale=2), Decimal("1E-999999")),
            (logical("fixed", "decimal", name="D", size=1, precision=4), Decimal(1000)),
        ]:
            with subtests.test(kind=kind):
                with pytest.raises(SchemaFormatError):
                    schema(kind).encode(value)
                with pytest.raises(SchemaFormatError):
                    schema(kind).to_json(value)

    def test_given_another_scale_or_time_zone_then_the_same_number_or_moment_is_written(self) -> None:
        ready = schema(logical("bytes", "decimal", precision=4, scale=2))
        for value in ["12.3", "1.2E+1", "12.3400", "0E+9", "-0.0"]:
            assert ready.decode(ready.encode(Decimal(value))) == Decimal(value), value
        # None of more digits than the precision is lost.
        assert schema(logical("bytes", "decimal", precision=2, scale=1)).decode(b"\x04\x30\x39") == Decimal("1234.5")
        millis = schema(logical("long", "timestamp-millis"))
        moment = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
        assert millis.decode(millis.encode(moment)) == moment

    def test_given_other_users_of_fastavro_then_their_logical_types_are_theirs(self) -> None:
        theirs = fastavro.parse_schema(logical("bytes", "decimal", precision=2, scale=1))

        # Rounded to the precision.
        assert fastavro.schemaless_reader(io.BytesIO(b"\x04\x30\x39"), theirs, None) == Decimal("1.2E+3")


class TestJson:
    def test_given_a_union_then_its_value_is_labelled_unless_it_is_null(self) -> None:
        ready = schema(record("R", a=["null", "string", logical("long", "timestamp-millis")]))

        assert ready.to_json({"a": "x"}) == {"a": {"string": "x"}}
        assert ready.to_json({"a": None}) == {"a": None}
        # Bytes are text of the first 256 letters.
        assert schema("bytes").to_json(b"\x00a\xff") == "\x00a\xff"
        assert schema("bytes").from_json("\x00a\xff") == b"\x00a\xff"
        assert ready.to_json({"a": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}) == {"a": {"long": 1000}}

    def test_given_any_float_then_strict_json_holds_it(self) -> None:
        for kind, value in product(("float", "double"), (math.inf, -math.inf, math.nan, -0.0, 1.5)):
            text = json.dumps(schema(kind).to_json(value), allow_nan=False)
            assert str(schema(kind).from_json(json.loads(text))) == str(value), kind

    def test_given_json_of_something_else_then_it_is_refused(self, subtests: pytest.Subtests) -> None:
        for kind, value in [
            ("long", "1"),
            ("long", True),
            ("int", 2**31),
            ("string", 1),
            ("bytes", "\u0100"),
            ("double", "endless"),
            (["null", "string"], "bare"),
            (["null", "string"], {"long": 1}),
            (["string", "long"], None),
            ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
            ({"type": "fixed", "name": "F", "size": 2}, "abc"),
            (record("R", a="int"), {}),
            ({"type": "array", "items": "int"}, {}),
        ]:
            with subtests.test(kind=kind), pytest.raises(SchemaFormatError):
                schema(kind).from_json(value)


@given(typed_values())
def test_any_value_survives_bytes_and_json(typed: tuple[Any, Any]) -> None:
    kind, value = typed
    ready = schema(kind)

    payload = ready.encode(value)

    assert ready.decode(payload) == value
    text = json.dumps(ready.to_json(value), allow_nan=False)
    assert ready.encode(ready.from_json(json.loads(text))) == payload


@given(typed_values(), st.binary(max_size=30))
@example(("int", 0), b"\x80\x80\x80\x80\x10")
def test_any_bytes_are_decoded_or_refused(typed: tuple[Any, Any], payload: bytes) -> None:
    ready = schema(typed[0])
    try:
        value = ready.decode(payload)
    except SchemaFormatError:
        return
    assert ready.decode(ready.encode(value)) == value or "nan" in str(value)


class TestCodec:
    def test_given_a_framed_value_then_its_schema_comes_from_the_registry(self, registry: SchemaRegistry) -> None:
        number = registry.register("a", Schema(SchemaType.AVRO, json.dumps(record("R", a=["null", "string"]))))
        codec = AvroCodec(registry)
        framed = frame_bytes(number) + b"\x02\x06foo"

        assert codec.decode(framed) == {"a": "foo"}
        assert codec.encode(number, {"a": "foo"}) == framed
        assert codec.to_json(framed) == {"a": {"string": "foo"}}
        assert codec.from_json(number, {"a": {"string": "foo"}}) == framed
        assert codec.schema(number) is codec.schema(number)

    def test_given_imported_schemas_then_they_come_along_at_any_depth(self, registry: SchemaRegistry) -> None:
        registry.register("inner", Schema(SchemaType.AVRO, json.dumps(record("ns.Inner", a="int"))))
        inner = SchemaReference("ns.Inner", "inner", 1)
        middle = Schema(SchemaType.AVRO, json.dumps(record("ns.Middle", one="Inner")), (inner,))
        registry.register("middle", middle)
        imported = (SchemaReference("ns.Middle", "middle", 1), inner)
        outer = {"type": "array", "items": record("ns.Outer", two="Middle", three="ns.Inner")}
        number = registry.register("outer", Schema(SchemaType.AVRO, json.dumps(outer), imported))
        value = [{"two": {"one": {"a": 1}}, "three": {"a": 2}}]

        framed = AvroCodec(registry).encode(number, value)

        assert framed == frame_bytes(number) + b"\x02\x02\x04\x00"
        assert AvroCodec(registry).decode(framed) == value

    def test_given_no_frame_an_unknown_id_or_another_language_then_it_is_refused(
        self, registry: SchemaRegistry, subtests: pytest.Subtests
    ) -> None:
        number = registry.register("a", Schema(SchemaType.JSON, "{}"))
        for value, error, message in [
            (b"text", SchemaFormatError, "does not start with a schema id"),
            (frame_bytes(7), SchemaMissingError, None),
            (frame_bytes(number), SchemaFormatError, "JSON, not AVRO"),
        ]:
            with subtests.test(value=value), pytest.raises(error, match=message):
                AvroCodec(registry).decode(value)
