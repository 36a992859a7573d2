"""Java's texts of numbers, and the literals of InsertHeader."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.smt.values.data import (
    STRING,
    DataError,
    Field,
    Float32,
    Moment,
    SchemaType,
    Struct,
    struct_schema,
)
from mirror_lib.features.transforms.smt.values.java_strings import connect_text, java_text, number_text
from mirror_lib.features.transforms.smt.values.literals import parse_literal


def test_floating_numbers() -> None:
    for number, text in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456.789, "123456.789"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (4.9e-324, "4.9E-324"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Float32(0.1), "0.1"),
        (Float32(3.4028234663852886e38), "3.4028235E38"),
        (Float32(16777216), "1.6777216E7"),
    ]:
        assert number_text(number) == text, text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_comes_back_from_its_text(number: float) -> None:
    assert float(number_text(number)) == number


def test_values_as_connect_writes_them_in_headers_and_java_prints_them() -> None:
    for value, text in [
        (b"hi", "aGk="),
        ([b"hi", 'say "x"'], '["aGk=","say \\"x\\""]'),
        ({"a": 1, "b": None}, '{"a":1,"b":null}'),
        (Moment(0), "00:00:00.000Z"),
        (Moment(86_400_000), "1970-01-02"),
        (Moment(86_400_001), "1970-01-02T00:00:00.001Z"),
        (True, "true"),
        ('say "x"', 'say "x"'),
    ]:
        assert connect_text(value) == text, text

    struct = Struct.of(struct_schema([Field("a", STRING), Field("b", STRING)]), [("a", "x")])

    assert java_text({"a": 1, "b": [True, None, 1.5]}) == "{a=1, b=[true, null, 1.5]}"
    assert java_text(struct) == "Struct{a=x}"
    assert java_text(Decimal("1E+3")) == "1E+3"
    with pytest.raises(DataError, match=r"class \[B has no text"):
        java_text(b"x")


T = SchemaType


def test_what_a_number_beyond_a_double_and_a_null_become_and_that_arrays_and_maps_are_refused(
    subtests: pytest.Subtests,
) -> None:
    schema, value = parse_literal("123456789012345678901234567890")

    assert value == Decimal("123456789012345678901234567890")
    assert (schema.type, schema.parameters) == (T.BYTES, (("scale", "0"),))

    assert parse_literal(" null ") == (None, None)
    for literal in ["[1]", " {a:1}", "[", "{"]:
        with subtests.test(literal), pytest.raises(ValueError, match="arrays and maps"):
            parse_literal(literal)


@given(st.text(alphabet=st.characters(exclude_characters="[{"), max_size=30))
def test_every_other_literal_is_read(literal: str) -> None:
    schema, value = parse_literal(literal)

    assert (schema is None) == (value is None)
