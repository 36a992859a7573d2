"""Cast and TimestampConverter."""

from __future__ import annotations

import struct as binary
from decimal import Decimal
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.transform.smt.apply import apply
from mirror_lib.transform.smt.model import Cast, TimestampConverter, TimestampType, Transform, UnixPrecision
from mirror_lib.transform.smt.record import Side, SmtRecord
from mirror_lib.transform.smt.values.data import (
    DATE,
    TIMESTAMP,
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
from mirror_lib.transform.smt.values.date_format import DateFormat
from mirror_lib.transform.smt.values.numbers import nearest_float32, wrap

T = SchemaType


def value_of(transform: Transform, value: Value, schema: Schema | None = None) -> tuple[Schema | None, Value]:
    after = apply(transform, SmtRecord("t", value=value, value_schema=schema))
    assert after is not None
    return after.value_schema, after.value


def cast(value: Value, kind: SchemaType) -> Value:
    return value_of(Cast(Side.VALUE, whole=kind), value)[1]


class TestCast:
    #: A value, the type, and what Java's narrowing makes of it.
    CASTS: ClassVar = [
        (42, T.INT8, Int8(42)),
        (300, T.INT8, Int8(44)),
        (-129, T.INT8, Int8(127)),
        (42, T.INT16, Int16(42)),
        (1 << 31, T.INT32, Int32(-(1 << 31))),
        (42, T.FLOAT32, Float32(42)),
        (42, T.BOOLEAN, True),
        (0, T.BOOLEAN, False),
        (42, T.STRING, "42"),
        (Float64(1e19), T.INT64, (1 << 63) - 1),
        (Float64(3e9), T.INT32, Int32((1 << 31) - 1)),
        (Float64(3e9), T.INT8, Int8(-1)),
        (Float64(-1.9), T.INT32, Int32(-1)),
        (Float64(float("nan")), T.INT64, 0),
        (Float64(0.5), T.BOOLEAN, False),
        (Float64(0.1), T.FLOAT32, Float32(0.1)),
        (Float64(1e300), T.FLOAT32, Float32(float("inf"))),
        (Float64(1e7), T.STRING, "1.0E7"),
        (Float64(1.10, "1.10"), T.STRING, "1.1"),
        (True, T.INT8, Int8(1)),
        (True, T.FLOAT64, Float64(1)),
        (True, T.STRING, "true"),
        ("42", T.INT32, Int32(42)),
        ("+42", T.INT64, 42),
        (" 1.5e3f ", T.FLOAT64, Float64(1500)),
        ("-Infinity", T.FLOAT64, Float64(float("-inf"))),
        ("TRUE", T.BOOLEAN, True),
        ("yes", T.BOOLEAN, False),
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
            (1 << 64, T.INT32, out_of_range),
            ([1], T.STRING, "does not support casting from ARRAY"),
            ({"a": 1}, T.STRING, "does not support casting from MAP"),
            (b"1", T.INT8, r"Unexpected type in Cast transformation: class \[B"),
        ]:
            with subtests.test(value=value, kind=kind), pytest.raises(DataError, match=message):
                cast(value, kind)

    def test_fields_of_a_map(self) -> None:
        fields = Cast(Side.VALUE, {"a": T.STRING, "missing": T.INT8})

        assert value_of(fields, {"b": 1, "a": 2}) == (None, {"b": 1, "a": "2", "missing": None})
        assert value_of(Cast(Side.VALUE, whole=T.INT8), None) == (None, None)

    def test_fields_of_a_struct_change_their_schemas(self) -> None:
        schema = struct_schema(
            [
                Field("n", Schema(T.INT32, optional=True, default=Int32(2))),
                Field("at", TIMESTAMP),
                Field("day", DATE),
                Field("same", Schema(T.STRING)),
            ]
        )
        value = Struct.of(schema, [("at", Moment(5)), ("day", Moment(86_400_000)), ("same", "x")])

        new_schema, after = value_of(Cast(Side.VALUE, {"n": T.INT64, "at": T.INT64, "day": T.INT32}), value, schema)

        expected = struct_schema(
            [
                Field("n", Schema(T.INT64, optional=True, default=2)),
                Field("at", Schema(T.INT64)),
                Field("day", Schema(T.INT32)),
                Field("same", Schema(T.STRING)),
            ]
        )
        assert new_schema == expected
        assert after == Struct(expected, {"n": 2, "at": 5, "day": Int32(1), "same": "x"})

    def test_a_decimal_is_cut_to_the_width(self) -> None:
        decimal = Schema(T.BYTES, name="org.apache.kafka.connect.data.Decimal", parameters=(("scale", "0"),))
        schema = struct_schema([Field("d", decimal)])

        _, after = value_of(Cast(Side.VALUE, {"d": T.INT32}), Struct.of(schema, [("d", Decimal(1 << 31))]), schema)

        assert isinstance(after, Struct)
        assert after.values["d"] == -(1 << 31)

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


class TestTimestampConverter:
    DAY = 1_700_006_400_000
    #: 2023-11-15T01:02:03.004Z
    AT = 1_700_010_123_004

    def converter(self, target: TimestampType, **options: object) -> TimestampConverter:
        return TimestampConverter(Side.VALUE, target, **options)  # type: ignore[arg-type]

    def test_numbers_are_unix_times(self) -> None:
        for precision, number in (
            (UnixPrecision.SECONDS, 1_700_010_123),
            (UnixPrecision.MILLISECONDS, self.AT),
            (UnixPrecision.MICROSECONDS, self.AT * 1000 + 999),
            (UnixPrecision.NANOSECONDS, self.AT * 1_000_000 + 999_999),
        ):
            converter = self.converter(TimestampType.TIMESTAMP, precision=precision)
            expected = self.AT - 4 if precision is UnixPrecision.SECONDS else self.AT
            assert value_of(converter, number) == (None, Moment(expected))

    def test_moments_become_numbers_towards_zero(self) -> None:
        seconds = self.converter(TimestampType.UNIX, precision=UnixPrecision.SECONDS)

        assert value_of(seconds, Moment(self.AT)) == (None, 1_700_010_123)
        assert value_of(seconds, Moment(-1)) == (None, 0)

    def test_texts_in_a_format(self) -> None:
        written = DateFormat.compile("yyyy-MM-dd HH:mm:ss.SSS")

        to_text = self.converter(TimestampType.STRING, format=written)
        assert value_of(to_text, self.AT) == (None, "2023-11-15 01:02:03.004")
        to_number = self.converter(TimestampType.UNIX, format=written)
        assert value_of(to_number, "2023-11-15 01:02:03.004") == (None, self.AT)

    def test_days_and_times_of_day(self) -> None:
        assert value_of(self.converter(TimestampType.DATE), self.AT) == (None, Moment(self.DAY))
        assert value_of(self.converter(TimestampType.TIME), self.AT) == (None, Moment(self.AT - self.DAY))

    def test_a_field_of_a_map(self) -> None:
        converter = self.converter(TimestampType.UNIX, field="at", precision=UnixPrecision.SECONDS)

        assert value_of(converter, {"a": 1, "at": Moment(5000)}) == (None, {"a": 1, "at": 5})
        assert value_of(converter, {"a": 1}) == (None, {"a": 1, "at": None})
        assert value_of(converter, None) == (None, None)

    def test_a_field_of_a_struct_changes_its_schema(self) -> None:
        schema = struct_schema([Field("at", Schema(T.INT64, optional=True)), Field("b", Schema(T.STRING))])
        value = Struct.of(schema, [("at", self.AT), ("b", "x")])

        new_schema, after = value_of(self.converter(TimestampType.TIMESTAMP, field="at"), value, schema)

        expected = struct_schema(
            [
                Field("at", Schema(T.INT64, optional=True, name=TIMESTAMP.name, version=1)),
                Field("b", Schema(T.STRING)),
            ]
        )
        assert (new_schema, after) == (expected, Struct(expected, {"at": Moment(self.AT), "b": "x"}))

    def test_other_values_are_no_times(self, subtests: pytest.Subtests) -> None:
        for value, schema, message in [
            (Int32(5), None, "does not support class"),
            (Float64(1.5), None, "does not support class"),
            (True, None, "does not support class"),
            ([1], None, "does not support class"),
            (b"", Schema(T.BYTES), "does not correspond to a known timestamp type format"),
            ("2023", None, "no format is set"),
        ]:
            with subtests.test(value=value), pytest.raises(DataError, match=message):
                value_of(self.converter(TimestampType.UNIX), value, schema)
