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


def test_paths() -> None:
    for text, steps in PATHS.items():
        assert parse_path(text) == steps, text


def test_a_backtick_without_a_partner(subtests: pytest.Subtests) -> None:
    for text, position in [("`foo.bar.baz", 0), ("foo.`bar.baz", 4), ("foo.bar.`baz", 8), ("foo.bar.`baz\\`", 8)]:
        with subtests.test(text), pytest.raises(ValueError, match=f"position {position}"):
            parse_path(text)


class TestExtractField:
    def test_a_field_takes_the_place_of_the_whole(self) -> None:
        extract = ExtractField(Side.VALUE, "magic", ("magic",))

        assert value_of(extract, {"magic": 42}) == (None, 42)
        assert value_of(extract, {"other": 42}) == (None, None)
        assert value_of(extract, None) == (None, None)

    def test_a_nested_field(self) -> None:
        extract = ExtractField(Side.VALUE, "a.b", ("a", "b"))

        assert value_of(extract, {"a": {"b": 42}}) == (None, 42)
        assert value_of(extract, {"a": None}) == (None, None)
        assert value_of(extract, nested(), OUTER) == (INT32, Int32(1))
        with pytest.raises(DataError, match="nested field access"):
            value_of(extract, {"a": 1})

    def test_a_struct_must_have_the_field(self) -> None:
        with pytest.raises(DataError, match="Unknown field: nope"):
            value_of(ExtractField(Side.VALUE, "nope", ("nope",)), nested(), OUTER)

    def test_a_null_struct_gives_a_null_of_the_fields_type(self) -> None:
        assert value_of(ExtractField(Side.VALUE, "d", ("d",)), None, OUTER) == (STRING, None)


class TestHoistField:
    def test_the_whole_becomes_a_field(self) -> None:
        hoist = HoistField(Side.VALUE, "magic")

        assert value_of(hoist, 42) == (None, {"magic": 42})
        schema = struct_schema([Field("magic", INT32)])
        assert value_of(hoist, Int32(42), INT32) == (schema, Struct(schema, {"magic": Int32(42)}))

    def test_a_tombstone_is_none_any_more(self) -> None:
        assert value_of(HoistField(Side.VALUE, "magic"), None) == (None, {"magic": None})

    def test_a_null_where_a_value_is_required_fails(self) -> None:
        with pytest.raises(DataError, match='null used for required field: "magic"'):
            value_of(HoistField(Side.VALUE, "magic"), None, INT32)


class TestValueToKey:
    def test_fields_of_the_value_make_the_key(self) -> None:
        after = apply(ValueToKey(("a", "b")), SmtRecord("t", key="old", value={"a": 1, "b": 2, "c": 3}))

        assert after is not None
        assert (after.key, after.value) == ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3})

    def test_a_missing_field_is_null_in_a_map_and_an_error_in_a_struct(self) -> None:
        after = apply(ValueToKey(("zip",)), SmtRecord("t", value={"a": 1}))
        assert after is not None
        assert after.key == {"zip": None}

        with pytest.raises(DataError, match="Field does not exist: zip"):
            apply(ValueToKey(("zip",)), SmtRecord("t", value=nested(), value_schema=OUTER))

    def test_with_a_schema(self) -> None:
        after = apply(ValueToKey(("d",)), SmtRecord("t", value=nested(), value_schema=OUTER))

        assert after is not None
        schema = struct_schema([Field("d", STRING)])
        assert (after.key_schema, after.key) == (schema, Struct(schema, {"d": "x"}))

    def test_a_tombstone_fails(self) -> None:
        with pytest.raises(DataError, match=r"Only Map objects supported.*found: null"):
            apply(ValueToKey(("a",)), SmtRecord("t"))


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

    def test_a_map_within_a_struct_is_refused(self) -> None:
        inner = Schema(SchemaType.MAP, keys=STRING, values=STRING)
        outer = struct_schema([Field("m", inner)])

        with pytest.raises(DataError, match=r"does not support MAP .* \(for field m\)"):
            value_of(Flatten(Side.VALUE), Struct.of(outer, [("m", {})]), outer)

    def test_a_tombstone_passes(self) -> None:
        assert value_of(Flatten(Side.VALUE), None) == (None, None)
