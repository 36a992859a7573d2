"""ExtractField, HoistField, Flatten, ValueToKey, and the paths to nested fields."""

from __future__ import annotations

import pytest

from mirror_lib.transform.smt.apply import apply
from mirror_lib.transform.smt.field_path import parse_path
from mirror_lib.transform.smt.model import ExtractField, Flatten, HoistField, Transform, ValueToKey
from mirror_lib.transform.smt.record import Side, SmtRecord
from mirror_lib.transform.smt.values.data import (
    OPTIONAL_STRING,
    STRING,
    DataError,
    Field,
    Int32,
    Schema,
    SchemaType,
    Struct,
    Value,
    struct_schema,
)

INT32 = Schema(SchemaType.INT32)
INNER = struct_schema([Field("b", INT32), Field("c", OPTIONAL_STRING)])
OUTER = struct_schema([Field("a", INNER), Field("d", STRING)])


def nested() -> Struct:
    return Struct.of(OUTER, [("a", Struct.of(INNER, [("b", Int32(1)), ("c", None)])), ("d", "x")])


def value_of(transform: Transform, value: Value, schema: Schema | None = None) -> tuple[Schema | None, Value]:
    after = apply(transform, SmtRecord("t", key="key", value=value, value_schema=schema))
    assert after is not None
    return after.value_schema, after.value


#: From Kafka's `FieldPathNotationTest`.
PATHS = {
    "..": ("", "", ""),
    "foo..": ("foo", "", ""),
    ".bar.": ("", "bar", ""),
    "foobarbaz": ("foobarbaz",),
    "foo.bar.baz": ("foo", "bar", "baz"),
    "foo`bar`baz": ("foo`bar`baz",),
    "`foo.bar.baz`": ("foo.bar.baz",),
    "foo.`bar.baz`": ("foo", "bar.baz"),
    "`foo.bar`.baz": ("foo.bar", "baz"),
    "foo.`bar`.baz": ("foo", "bar", "baz"),
    "foo.``bar.baz`": ("foo", "`bar.baz"),
    "foo.`bar.baz``": ("foo", "bar.baz`"),
    "foo.`ba`r.baz`": ("foo", "ba`r.baz"),
    "foo.ba`r.baz": ("foo", "ba`r", "baz"),
    "foo.``bar``.baz": ("foo", "`bar`", "baz"),
    "``foo.bar.baz``": ("`foo.bar.baz`",),
    "foo.`bar\\`.baz`": ("foo", "bar`.baz"),
    "foo.`bar.`baz`": ("foo", "bar.`baz"),
    "foo.`bar\\`.`baz`": ("foo", "bar`.`baz"),
    "foo.`bar\\\\`.\\`baz`": ("foo", "bar\\`.\\`baz"),
}


def test_paths_are_those_of_kafka_and_a_backtick_needs_a_partner(subtests: pytest.Subtests) -> None:
    for text, steps in PATHS.items():
        assert parse_path(text) == steps, text

    for text, position in [("`foo.bar.baz", 0), ("foo.`bar.baz", 4), ("foo.bar.`baz", 8), ("foo.bar.`baz\\`", 8)]:
        with subtests.test(text), pytest.raises(ValueError, match=f"position {position}"):
            parse_path(text)


def test_a_field_takes_the_place_of_the_whole_and_the_whole_that_of_a_field(subtests: pytest.Subtests) -> None:
    magic = ExtractField(Side.VALUE, "magic", ("magic",))
    inner = ExtractField(Side.VALUE, "a.b", ("a", "b"))
    hoist = HoistField(Side.VALUE, "magic")
    hoisted = struct_schema([Field("magic", INT32)])
    cases: list[tuple[Transform, Value, Schema | None, tuple[Schema | None, Value]]] = [
        (magic, {"magic": 42}, None, (None, 42)),
        (magic, {"other": 42}, None, (None, None)),
        (magic, None, None, (None, None)),
        (inner, {"a": {"b": 42}}, None, (None, 42)),
        (inner, {"a": None}, None, (None, None)),
        (inner, nested(), OUTER, (INT32, Int32(1))),
        # A null of the field's type.
        (ExtractField(Side.VALUE, "d", ("d",)), None, OUTER, (STRING, None)),
        (hoist, 42, None, (None, {"magic": 42})),
        (hoist, Int32(42), INT32, (hoisted, Struct(hoisted, {"magic": Int32(42)}))),
        # A tombstone is none any more.
        (hoist, None, None, (None, {"magic": None})),
        (Flatten(Side.VALUE), None, None, (None, None)),
    ]
    for transform, value, schema, expected in cases:
        with subtests.test(transform=transform, value=value):
            assert value_of(transform, value, schema) == expected


def test_what_has_not_the_shape_for_a_transform_is_refused(subtests: pytest.Subtests) -> None:
    with_map = struct_schema([Field("m", Schema(SchemaType.MAP, keys=STRING, values=STRING))])
    cases: list[tuple[Transform, Value, Schema | None, str]] = [
        (ExtractField(Side.VALUE, "a.b", ("a", "b")), {"a": 1}, None, "nested field access"),
        (ExtractField(Side.VALUE, "nope", ("nope",)), nested(), OUTER, "Unknown field: nope"),
        (HoistField(Side.VALUE, "magic"), None, INT32, 'null used for required field: "magic"'),
        (ValueToKey(("zip",)), nested(), OUTER, "Field does not exist: zip"),
        (ValueToKey(("a",)), None, None, r"Only Map objects supported.*found: null"),
        (
            Flatten(Side.VALUE),
            Struct.of(with_map, [("m", {})]),
            with_map,
            r"does not support MAP .* \(for field m\)",
        ),
    ]
    for transform, value, schema, message in cases:
        with subtests.test(transform=transform), pytest.raises(DataError, match=message):
            value_of(transform, value, schema)


class TestValueToKey:
    def test_fields_of_the_value_make_the_key_and_a_missing_one_is_null_in_a_map(self) -> None:
        after = apply(ValueToKey(("a", "b", "zip")), SmtRecord("t", key="old", value={"a": 1, "b": 2, "c": 3}))

        assert after is not None
        assert (after.key, after.value) == ({"a": 1, "b": 2, "zip": None}, {"a": 1, "b": 2, "c": 3})

    def test_with_a_schema(self) -> None:
        after = apply(ValueToKey(("d",)), SmtRecord("t", value=nested(), value_schema=OUTER))

        assert after is not None
        schema = struct_schema([Field("d", STRING)])
        assert (after.key_schema, after.key) == (schema, Struct(schema, {"d": "x"}))


class TestFlatten:
    def test_nested_maps_come_to_the_top(self) -> None:
        flatten = Flatten(Side.VALUE, "#")
        value = {"A": {"B": {"int": 8, "list": [{"x": 1}], "null": None}, "empty": {}}, "top": 1}

        assert value_of(flatten, value) == (None, {"A#B#int": 8, "A#B#list": [{"x": 1}], "A#B#null": None, "top": 1})

    def test_nested_structs_come_to_the_top(self) -> None:
        schema, value = value_of(Flatten(Side.VALUE), nested(), OUTER)

        assert schema == struct_schema([Field("a.b", INT32), Field("a.c", OPTIONAL_STRING), Field("d", STRING)])
        assert value == Struct(schema, {"a.b": Int32(1), "a.c": None, "d": "x"})  # type: ignore[arg-type]

    def test_fields_of_an_optional_struct_are_optional(self) -> None:
        optional = Schema(SchemaType.STRUCT, optional=True, fields=INNER.fields)
        outer = struct_schema([Field("a", optional)])

        schema, value = value_of(Flatten(Side.VALUE), Struct.of(outer, [("a", None)]), outer)

        assert schema is not None
        assert [(each.name, each.schema.optional) for each in schema.fields] == [("a.b", True), ("a.c", True)]
        assert value == Struct(schema, {})

    def test_a_default_of_an_outer_struct_reaches_its_fields(self) -> None:
        default = Struct.of(INNER, [("b", Int32(7)), ("c", "y")])
        outer = struct_schema([Field("a", Schema(SchemaType.STRUCT, default=default, fields=INNER.fields))])

        schema, _ = value_of(Flatten(Side.VALUE), Struct(outer, {}), outer)

        assert schema is not None
        assert [each.schema.default for each in schema.fields] == [Int32(7), "y"]
