"""Numbers and texts that Cast makes; `tests/integration/transform/test_smt_like_java.py` compares with Java's own."""

from __future__ import annotations

import struct as binary
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.smt.apply import apply
from mirror_lib.features.transforms.smt.model import Cast
from mirror_lib.features.transforms.smt.record import Side, SmtRecord
from mirror_lib.features.transforms.smt.values.data import (
    DataError,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    SchemaType,
    Value,
    class_name,
)
from mirror_lib.features.transforms.smt.values.numbers import nearest_float32, wrap

T = SchemaType


def cast(value: Value, kind: SchemaType) -> Value:
    after = apply(Cast(Side.VALUE, whole=kind), SmtRecord("t", value=value))
    assert after is not None
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
