"""Numbers and texts that Cast makes; `integration/features/transforms/test_smt_like_java.py` compares with Java's own.

The converters: what Kafka's own `JsonConverterTest` says, and that nothing is lost on the way.
"""

from __future__ import annotations

import json
import math
import struct as binary
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.smt.apply import apply
from mirror_lib.features.transforms.smt.converters.converters import decode, encode
from mirror_lib.features.transforms.smt.model import Cast, ConverterKind, ConverterSettings
from mirror_lib.features.transforms.smt.record import Side, SmtRecord
from mirror_lib.features.transforms.smt.values.data import (
    BYTES,
    DECIMAL_NAME,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    STRING,
    DataError,
    Field,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Moment,
    Schema,
    SchemaType,
    Struct,
    Value,
    class_name,
    struct_schema,
)
from mirror_lib.features.transforms.smt.values.numbers import nearest_float32, wrap

T = SchemaType


def cast(value: Value, kind: SchemaType) -> Value:
    after = apply(Cast(Side.VALUE, whole=kind), SmtRecord("t", value=value))
    return after.value


class TestCast:
    #: A value, the type, and what Java's narrowing makes of it.
    CASTS: ClassVar = [
        (300, T.INT8, Int8(44)),
        (-129, T.INT16, Int16(-129)),
        (1 << 31, T.INT32, Int32(-(1 << 31))),
        (Float64(3e9), T.INT8, Int8(-1)),
        (Float64(float("nan")), T.INT64, 0),
        (Float64(0.1), T.FLOAT32, Float32(0.1)),
        (Float64(1e7), T.STRING, "1.0E7"),
        (True, T.FLOAT64, Float64(1)),
        (b"\xfe\xdc\xba\x98\x76\x54\x32\x10", T.STRING, "/ty6mHZUMhA="),
    ]

    def test_scalars(self) -> None:
        for value, kind, expected in self.CASTS:
            found = cast(value, kind)

            assert found == expected, value
            assert class_name(found) == class_name(expected), value

    def test_what_cannot_be_cast_fails(self, subtests: pytest.Subtests) -> None:
        out_of_range = "was out of range for requested data type"
        for value, kind, message in [
            ("128", T.INT8, out_of_range),
            ("1.0", T.INT32, out_of_range),
            (" 1", T.INT64, out_of_range),
            ("", T.FLOAT64, out_of_range),
            ("x", T.FLOAT32, out_of_range),
            # It must not be tried in all ways to divide the digits.
            ("1" * 10_000_000 + "x", T.FLOAT64, out_of_range),
            (1 << 64, T.INT32, out_of_range),
            ([1], T.STRING, "does not support casting from ARRAY"),
            ({"a": 1}, T.STRING, "does not support casting from MAP"),
            (b"1", T.INT8, r"Unexpected type in Cast transformation: class \[B"),
        ]:
            with subtests.test(value=str(value)[:9], kind=kind), pytest.raises(DataError, match=message):
                cast(value, kind)

    @given(st.integers(-(1 << 63), (1 << 63) - 1))
    def test_texts_of_longs_come_back(self, number: int) -> None:
        assert cast(cast(number, T.STRING), T.INT64) == number

    @given(st.floats(allow_nan=False))
    def test_texts_of_doubles_come_back(self, number: float) -> None:
        assert cast(cast(Float64(number), T.STRING), T.FLOAT64) == number

    @given(st.floats(allow_nan=False, width=32))
    def test_texts_of_floats_come_back(self, number: float) -> None:
        assert cast(cast(Float32(number), T.STRING), T.FLOAT32) == Float32(number)

    @given(st.integers(-(1 << 63), (1 << 63) - 1))
    def test_no_float_is_nearer_than_the_one_of_a_long(self, number: int) -> None:
        found = nearest_float32(number)

        bits = binary.unpack("<i", binary.pack("<f", found))[0]
        for neighbour in (bits - 1, bits + 1):
            if number == 0:
                break
            other = binary.unpack("<f", binary.pack("<i", neighbour))[0]
            assert abs(int(found) - number) <= abs(int(other) - number)

    def test_a_long_is_rounded_once(self) -> None:
        # As a double it is exactly between two floats, of which the even one would be the lower.
        number = (1 << 60) + (1 << 36) + 1

        assert int(nearest_float32(number)) == (1 << 60) + (1 << 37)
        assert int(Float32(float(number))) == 1 << 60

    @given(st.integers(), st.sampled_from([8, 16, 32, 64]))
    def test_narrowing_keeps_the_low_bits(self, number: int, bits: int) -> None:
        narrow = wrap(number, bits)

        assert -(1 << (bits - 1)) <= narrow < 1 << (bits - 1)
        assert (narrow - number) % (1 << bits) == 0


PLAIN = ConverterSettings("value.converter", ConverterKind.JSON, schemas_enable=False)
ENVELOPE = ConverterSettings("value.converter", ConverterKind.JSON)
TEXT = ConverterSettings("value.converter", ConverterKind.STRING)
RAW = ConverterSettings("value.converter")
SIMPLE = ConverterSettings("header.converter", ConverterKind.SIMPLE_HEADER)


def plain(text: str) -> Value:
    schema, value = decode(PLAIN, text.encode())
    assert schema is None
    return value


def written(value: Value) -> str:
    data = encode(PLAIN, None, value)
    return data.decode()


def enveloped(schema: str, payload: str, settings: ConverterSettings = ENVELOPE) -> tuple[Schema | None, Value]:
    return decode(settings, f'{{"schema":{schema},"payload":{payload}}}'.encode())


class TestPlainJson:
    def test_untouched_values_arrive_letter_by_letter_and_a_null_is_a_tombstone(self) -> None:
        for text in [
            "123456789012345678901234567890",
            "-0.0",
            "1.10",
            "1E400",
            "1e-7",
            "3.14159265358979323846264338327950288",
            '{"z":1,"a":2,"m":3}',
            '["é","\\uD83D\\uDE00","\\u0001","\\"\\\\/\\n"]',
            "[]",
            "{}",
            '""',
            "true",
        ]:
            assert written(plain(text)) == text, text

        assert written(plain(' { "a" : [ 1 , 2 ] , "a" : 3 } ')) == '{"a":3}'

        assert decode(PLAIN, None) == (None, None)
        assert encode(PLAIN, None, None) is None

    def test_what_is_no_json_is_refused_and_so_is_what_jackson_would_cut(self, subtests: pytest.Subtests) -> None:
        for text in ["", " ", "{", "NaN", "{} {}", "[1,]", "'a'", '"\t"', "01"]:
            with subtests.test(text), pytest.raises(DataError, match="not JSON"):
                plain(text)

        with pytest.raises(DataError, match="not UTF-8"):
            decode(PLAIN, b'"\xff"')
        with pytest.raises(DataError, match="too deeply"):
            decode(PLAIN, b"[" * 100_000)
        with pytest.raises(DataError, match="digits"):
            decode(PLAIN, b"9" * 5000)

    def test_values_that_transforms_make_and_logical_ones_need_a_schema(self, subtests: pytest.Subtests) -> None:
        for value, text in [
            (Float64(math.inf), '"Infinity"'),
            (Float64(1e10), "1.0E10"),
            (Float32(0.1), "0.1"),
            (Int8(5), "5"),
            (b"hi", '"aGk="'),
            ({1: "a"}, '[[1,"a"]]'),
        ]:
            assert written(value) == text, text

        for value in [Moment(0), Decimal(1), [Moment(0)]]:
            with subtests.test(value=value), pytest.raises(DataError, match="does not have corresponding schema type"):
                written(value)


class TestEnvelope:
    def test_members_are_written_in_the_order_of_connect(self) -> None:
        inner = Schema(T.STRING, optional=True, name="n", version=2, doc="d", parameters=(("p", "q"),), default="x")
        schema = struct_schema([Field("f", inner)])

        assert encode(ENVELOPE, schema, Struct(schema, {"f": "y"})) == (
            b'{"schema":{"type":"struct","fields":[{"type":"string","optional":true,"name":"n","version":2,"doc":"d",'
            b'"parameters":{"p":"q"},"default":"x","field":"f"}],"optional":false},"payload":{"f":"y"}}'
        )

    def test_a_value_without_a_schema_says_so(self) -> None:
        assert encode(ENVELOPE, None, {"a": 1}) == b'{"schema":null,"payload":{"a":1}}'
        assert encode(ENVELOPE, OPTIONAL_STRING, None) == (
            b'{"schema":{"type":"string","optional":true},"payload":null}'
        )
        assert encode(ENVELOPE, None, None) is None

    def test_what_is_no_schema_or_no_envelope_is_refused(self, subtests: pytest.Subtests) -> None:
        for text in ["{}", "1", '{"schema":null}', '{"schema":null,"payload":1,"more":1}', "[1,2]"]:
            with subtests.test(text), pytest.raises(DataError, match="may not contain additional fields"):
                decode(ENVELOPE, text.encode())

        for schema, says in [
            ('{"type":"int8","default":"x"}', "does not match its schema"),
            ('{"type":"string","parameters":{"a":1}}', "string values"),
        ]:
            with subtests.test(schema), pytest.raises(DataError, match=says):
                enveloped(schema, "null")

    def test_a_payload_that_java_would_zero_or_cut_and_a_null_without_a_place_are_refused(
        self, subtests: pytest.Subtests
    ) -> None:
        for schema, payload in [
            ('{"type":"int8"}', "128"),
            ('{"type":"int32"}', '"5"'),
            ('{"type":"int32"}', "1.0"),
            ('{"type":"boolean"}', "0"),
            ('{"type":"string"}', "5"),
            ('{"type":"array","items":{"type":"int8"}}', "{}"),
        ]:
            with subtests.test(schema), pytest.raises(DataError, match="does not match its schema"):
                enveloped(schema, payload)

        with pytest.raises(DataError, match="null value for field that is required"):
            encode(ENVELOPE, BYTES, None)
        with pytest.raises(DataError, match="Invalid null value for required INT8"):
            enveloped('{"type":"int8"}', "null")

    def test_a_decimal_must_have_the_scale_of_its_schema_unless_it_is_written_as_a_number(self) -> None:
        schema = Schema(T.BYTES, name=DECIMAL_NAME, parameters=(("scale", "2"),))
        numeric = ConverterSettings("value.converter", ConverterKind.JSON, schemas_enable=False, numeric_decimals=True)

        with pytest.raises(DataError, match="Schema has scale 2, value has scale 0"):
            encode(PLAIN, schema, Decimal(0))
        assert encode(numeric, schema, Decimal("1.5")) == b"1.5"


class TestOtherConverters:
    def test_bytes_pass_and_in_headers_become_base64(self) -> None:
        assert decode(RAW, b"\xff") == (OPTIONAL_BYTES, b"\xff")
        assert encode(RAW, BYTES, b"\xff") == b"\xff"
        assert encode(RAW, BYTES, None) is None
        assert encode(SIMPLE, BYTES, b"hi") == b"aGk="
        assert encode(SIMPLE, Schema(T.INT8), Int8(5)) == b"5"
        assert encode(SIMPLE, OPTIONAL_BYTES, None) is None

    def test_nothing_else_is_written_as_bytes(self) -> None:
        with pytest.raises(DataError, match="Invalid schema type for ByteArrayConverter: STRING"):
            encode(RAW, STRING, "x")
        with pytest.raises(DataError, match=r"not compatible with objects of type class java\.lang\.String"):
            encode(RAW, None, "x")

    def test_texts(self) -> None:
        assert decode(TEXT, "é".encode()) == (OPTIONAL_STRING, "é")
        assert decode(TEXT, None) == (OPTIONAL_STRING, None)
        assert encode(TEXT, None, {"a": 1}) == b"{a=1}"
        assert encode(TEXT, None, None) is None
        with pytest.raises(DataError, match="not UTF-8"):
            decode(TEXT, b"\xff")


#: JSON as any program may write it, its floating numbers as texts that Python reads exactly.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


class Exactly(json.JSONEncoder):
    """Decimals as numbers, which the standard encoder cannot do: they are put in the place of marks."""

    def text(self, value: Any) -> str:
        if isinstance(value, Decimal):
            number = str(value)
            return number if any(mark in number for mark in ".E") else f"{number}.0"
        if isinstance(value, list):
            return "[" + ",".join(map(self.text, value)) + "]"
        if isinstance(value, dict):
            return "{" + ",".join(f"{json.dumps(name)}:{self.text(member)}" for name, member in value.items()) + "}"
        return json.dumps(value)


@given(JSON)
def test_plain_json_comes_back_with_every_digit_and_in_its_order(value: Any) -> None:
    text = Exactly().text(value)

    again = encode(PLAIN, *decode(PLAIN, text.encode()))

    if value is None:
        assert again is None
        return
    assert again is not None

    # An independent reader, which sees numbers as the texts that they are.
    def exact(data: bytes | str) -> Any:
        return json.loads(data, parse_float=str, parse_int=str, object_pairs_hook=list)

    assert exact(again) == exact(text)


SCALARS: dict[SchemaType, st.SearchStrategy[Value]] = {
    T.INT8: st.integers(-128, 127).map(Int8),
    T.INT32: st.integers(-(1 << 31), (1 << 31) - 1).map(Int32),
    T.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    T.FLOAT32: st.floats(allow_nan=False, allow_infinity=False, width=32).map(Float32),
    T.FLOAT64: st.floats(allow_nan=False, allow_infinity=False).map(Float64),
    T.BOOLEAN: st.booleans(),
    T.STRING: st.text(),
    T.BYTES: st.binary(),
}


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[Schema, Value]:
    """A schema with a value of it."""
    shape = draw(st.sampled_from(["scalar", "array", "struct", "decimal"] if depth else ["scalar"]))
    optional = draw(st.booleans())
    if shape == "scalar":
        kind = draw(st.sampled_from(list(SCALARS)))
        value = draw(SCALARS[kind] | st.none()) if optional else draw(SCALARS[kind])
        return Schema(kind, optional=optional), value
    if shape == "decimal":
        scale, digits = draw(st.integers(0, 30)), draw(st.integers(-(10**40), 10**40))
        schema = Schema(T.BYTES, name=DECIMAL_NAME, version=1, parameters=(("scale", str(scale)),))
        return schema, Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))
    if shape == "array":
        member, value = draw(typed(depth - 1))
        return Schema(T.ARRAY, optional=optional, values=member), [value, value]
    names = draw(st.lists(st.text(min_size=1), unique=True, max_size=3))
    members = [(name, *draw(typed(depth - 1))) for name in names]
    schema = Schema(T.STRUCT, optional=optional, fields=tuple(Field(name, each) for name, each, _ in members))
    return schema, Struct.of(schema, [(name, value) for name, _, value in members])


@given(typed())
def test_values_with_schemas_come_back_through_the_envelope(pair: tuple[Schema, Value]) -> None:
    assert decode(ENVELOPE, encode(ENVELOPE, *pair)) == pair


@given(st.text())
def test_texts_come_back(text: str) -> None:
    assert decode(TEXT, encode(TEXT, STRING, text))[1] == text
