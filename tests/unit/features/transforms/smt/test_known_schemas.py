"""Schemas that were there before: what was made of them is found again, and makes no difference.

The fast way of writing JSON, against the one that looks closely.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.smt.converters.converters import decode, encode
from mirror_lib.features.transforms.smt.converters.json_data import (
    schema_from_json,
    schema_to_json,
    value_from_json,
    value_to_json,
)
from mirror_lib.features.transforms.smt.converters.json_text import read_json, schemaless_json, write_json
from mirror_lib.features.transforms.smt.model import ConverterKind, ConverterSettings
from mirror_lib.features.transforms.smt.schema_cache import SchemaCache
from mirror_lib.features.transforms.smt.values.data import STRING, DataError, Float64, Int32, Schema, SchemaType, Value


def test_what_was_made_of_a_schema_by_a_setting_is_found_again() -> None:
    cache: SchemaCache[list[str]] = SchemaCache()
    setting = object()

    first, again = (cache.get(setting, STRING, lambda: ["made"]) for _ in range(2))

    assert first is again
    assert cache.get(object(), STRING, lambda: ["other"]) == ["other"]
    assert cache.get(setting, replace(STRING), lambda: ["of another schema"]) == ["of another schema"]


def test_a_failure_is_not_kept() -> None:
    cache: SchemaCache[str] = SchemaCache()
    setting = object()

    def fail() -> str:
        raise DataError("no")

    for _ in range(2):
        with pytest.raises(DataError, match="no"):
            cache.get(setting, STRING, fail)
    assert cache.get(setting, STRING, lambda: "made") == "made"


def test_schemas_without_end_are_told_apart() -> None:
    cache: SchemaCache[str | None] = SchemaCache()
    setting = object()

    # None of these objects is kept by anybody else, so their places in memory are used again.
    for number in range(1000):
        schema = Schema(SchemaType.STRUCT, name=f"s{number}")
        assert cache.get(setting, schema, lambda name=schema.name: name) == f"s{number}"  # type: ignore[misc]


SETTINGS = ConverterSettings("value.converter", ConverterKind.JSON)
_SCHEMAS = (
    "null",
    '{"type":"int32"}',
    '{"type":"int64","optional":true,"default":7}',
    '{"type":"struct","fields":[{"field":"a","type":"string","optional":true}]}',
    '{"type":"struct","fields":[{"field":"a","type":"double"}],"name":"\\u00e4"}',
    '{"type": "string"}',
    '{"type":"no such type"}',
    "{",
)
_PAYLOADS = (
    "null",
    "7",
    "7.10",
    '"text"',
    '{"a":"x"}',
    '{"a":1.0}',
    '{"a":null}',
    '{"a"',
    "\ufeff7",
    " 7 ",
    "7}",
    "9" * 1001,
)
_envelopes = st.builds(
    lambda layout, schema, payload: layout.replace("S", schema).replace("P", payload).encode(),
    st.sampled_from(
        [
            '{"schema":S,"payload":P}',
            '{"schema":S,"payload":P}',
            '{"schema":S,"payload":P} ',
            '{ "schema": S, "payload": P }',
            '{"payload":P,"schema":S}',
            '{"schema":S,"payload":P,"schema":{"type":"string"}}',
            '{"schema":S,"payload":P,"more":1}',
            '{"schema":S}',
        ]
    ),
    st.sampled_from(_SCHEMAS),
    st.sampled_from(_PAYLOADS),
)


def read_alone(data: bytes) -> tuple[Schema | None, Value] | str:
    try:
        node = read_json(data)
        if not isinstance(node, dict) or set(node) != {"schema", "payload"}:
            return "no envelope"
        schema = schema_from_json(node["schema"], SETTINGS)
        return schema, value_from_json(schema, node["payload"], SETTINGS)
    except DataError as error:
        return str(error)


def read(data: bytes) -> tuple[Schema | None, Value] | str:
    try:
        return decode(SETTINGS, data)
    except DataError as error:
        return "no envelope" if "envelope" in str(error) or "fields and may not" in str(error) else str(error)


@given(st.lists(_envelopes, max_size=12))
def test_what_was_read_before_makes_no_difference(envelopes: list[bytes]) -> None:
    assert [read(each) for each in envelopes] == [read_alone(each) for each in envelopes]


@given(st.lists(_envelopes, max_size=12))
def test_what_was_written_before_makes_no_difference(envelopes: list[bytes]) -> None:
    for data in envelopes:
        found = read(data)
        if isinstance(found, tuple) and found != (None, None):
            schema, value = found
            whole = {"schema": schema_to_json(schema, SETTINGS), "payload": value_to_json(schema, value, SETTINGS)}
            assert encode(SETTINGS, schema, value) == write_json(whole)


def test_what_a_schema_means_depends_on_the_settings(subtests: pytest.Subtests) -> None:
    for replaces in [True, False]:
        with subtests.test(replaces=replaces):
            settings = ConverterSettings("value.converter", ConverterKind.JSON, replace_null_with_default=replaces)

            for _ in range(2):
                _, value = decode(settings, b'{"schema":{"type":"int64","optional":true,"default":7},"payload":null}')
                assert value == (7 if replaces else None)


PLAIN = ConverterSettings("value.converter")
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_scalars |= st.floats(allow_nan=False, allow_infinity=False).map(lambda number: Float64(number, f"{number!r}0"))
_scalars |= st.integers(-(2**31), 2**31 - 1).map(Int32)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=10,
)


@given(_values)
def test_both_ways_write_the_same(value: Value) -> None:
    fast = schemaless_json(value)

    assert fast is None or fast == write_json(value_to_json(None, value, PLAIN))


def test_what_records_usually_hold_goes_the_fast_way_and_nothing_else() -> None:
    for value in [{"a": [1, Float64(1.1, "1.10"), None, True, 'ä\n"']}, [], {}, "text"]:
        assert schemaless_json(value) == write_json(value), value

    for value in ["\x1f", "\U0001f600", "\ud800", {1: 2}, object()]:
        assert schemaless_json(value) is None, value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_blanks_and_marks_around_a_text_mean_nothing(value: Value) -> None:
    text = json.dumps(value)

    assert read_json(text.encode()) == read_json(f"\ufeff \n{text} ".encode()) == value


def test_numbers_have_at_most_a_thousand_digits(subtests: pytest.Subtests) -> None:
    for digits in [1000, 1001, 5000]:
        with subtests.test(digits=digits):
            text = b'{"n": ' + b"9" * digits + b"}"

            if digits <= 1000:
                assert read_json(text) == {"n": 10**digits - 1}
            else:
                with pytest.raises(DataError, match=f"a number has {digits} digits"):
                    read_json(text)
