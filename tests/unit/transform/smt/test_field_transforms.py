"""InsertField, MaskField and ReplaceField, as Kafka's own tests of the Java classes have them."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

import pytest

from mirror_lib.transform.smt.apply import apply
from mirror_lib.transform.smt.model import InsertedField, InsertField, MaskField, ReplaceField
from mirror_lib.transform.smt.record import Side, SmtRecord
from mirror_lib.transform.smt.values.data import (
    DATE,
    OPTIONAL_STRING,
    STRING,
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

INT32 = Schema(SchemaType.INT32)


def schemaless(value: Value) -> SmtRecord:
    return SmtRecord("orders", 3, None, value, timestamp=1_700_000_000_000)


def with_schema(value: Struct | None, schema: Schema | None = None) -> SmtRecord:
    used = schema if value is None else value.schema
    return SmtRecord("orders", 3, None, value, timestamp=1_700_000_000_000, value_schema=used)


def person() -> Struct:
    schema = struct_schema([Field("name", STRING), Field("age", INT32), Field("nick", OPTIONAL_STRING)])
    return Struct.of(schema, [("name", "Ada"), ("age", Int32(36))])


def changed(transform: InsertField | MaskField | ReplaceField, record: SmtRecord) -> Value:
    after = apply(transform, record)
    assert after is not None
    assert (after.topic, after.partition, after.timestamp, after.key) == ("orders", 3, 1_700_000_000_000, None)
    return after.value


class TestMaskField:
    #: A value of each class, what masks it, and what a replacement of 123 makes of it.
    MASKS: ClassVar = [
        (True, False, None),
        (Int8(42), Int8(0), Int8(123)),
        (Int16(42), Int16(0), Int16(123)),
        (Int32(42), Int32(0), Int32(123)),
        (42, 0, 123),
        (Float32(42), Float32(0), Float32(123)),
        (Float64(42), Float64(0), Float64(123)),
        (Decimal("42.0"), Decimal(0), Decimal(123)),
        ("55.121.20.20", "", "123"),
        (Moment(17), Moment(0), None),
        ([42], [], None),
        ({"key": "value"}, {}, None),
    ]

    def test_a_value_gives_way_to_the_zero_of_its_type(self) -> None:
        for value, mask, _ in self.MASKS:
            after = changed(MaskField(Side.VALUE, ("f",)), schemaless({"magic": 42, "f": value}))

            assert after == {"magic": 42, "f": mask}, value
            assert isinstance(after, dict), value
            assert class_name(after["f"]) == class_name(value), value

    def test_a_replacement_takes_the_type_of_the_value(self, subtests: pytest.Subtests) -> None:
        mask = MaskField(Side.VALUE, ("f",), "123")
        for value, _, replaced in self.MASKS:
            with subtests.test(value=value):
                if replaced is None:
                    with pytest.raises(DataError, match="Cannot mask value of type"):
                        apply(mask, schemaless({"f": value}))
                else:
                    after = changed(mask, schemaless({"f": value}))
                    assert after == {"f": replaced}
                    assert isinstance(after, dict)
                    assert class_name(after["f"]) == class_name(value)
        stars = MaskField(Side.VALUE, ("f",), "****")
        assert changed(stars, schemaless({"f": "secret"})) == {"f": "****"}
        with pytest.raises(DataError, match="Unable to convert"):
            apply(stars, schemaless({"f": 1}))

    def test_nulls_stay_and_missing_fields_appear_as_nulls(self) -> None:
        after = changed(MaskField(Side.VALUE, ("a", "b")), schemaless({"a": None, "c": 1}))

        assert after == {"a": None, "c": 1, "b": None}

    def test_anything_but_a_map_fails_also_a_tombstone(self, subtests: pytest.Subtests) -> None:
        for value in [None, b"bytes", "text", [1]]:
            with (
                subtests.test(value=value),
                pytest.raises(DataError, match=r"Only Map objects supported in absence of schema for \[mask fields\]"),
            ):
                apply(MaskField(Side.VALUE, ("a",)), schemaless(value))

    def test_with_a_schema_the_fields_keep_their_types(self) -> None:
        after = changed(MaskField(Side.VALUE, ("name", "age", "nick", "unknown")), with_schema(person()))

        assert after == Struct(person().schema, {"name": "", "age": Int32(0), "nick": None})

    def test_a_null_becomes_the_default_before_it_is_masked(self) -> None:
        defaulted = Schema(SchemaType.STRING, optional=True, default="x")
        record = with_schema(Struct(struct_schema([Field("f", defaulted)]), {"f": None}))

        assert changed(MaskField(Side.VALUE, ("f",), "m"), record) == Struct(record.value_schema, {"f": "m"})  # type: ignore[arg-type]
        kept = changed(MaskField(Side.VALUE, ("f",), "m", replace_null_with_default=False), record)
        assert kept == Struct(record.value_schema, {"f": None})  # type: ignore[arg-type]

    def test_keys_are_masked_by_the_key_class(self) -> None:
        record = SmtRecord("t", key={"f": 1}, value={"f": 1})
        after = apply(MaskField(Side.KEY, ("f",)), record)

        assert after is not None
        assert (after.key, after.value) == ({"f": 0}, {"f": 1})


class TestInsertField:
    ALL = InsertField(
        Side.VALUE,
        topic=InsertedField("topic", optional=False),
        partition=InsertedField("partition"),
        timestamp=InsertedField("at"),
        static=InsertedField("site"),
        static_value="Berlin",
    )

    def test_facts_of_the_record_come_after_its_own_fields(self) -> None:
        after = changed(self.ALL, schemaless({"magic": 42}))

        assert after == {
            "magic": 42,
            "topic": "orders",
            "partition": 3,
            "at": 1_700_000_000_000,
            "site": "Berlin",
        }
        assert isinstance(after, dict)
        assert list(after) == ["magic", "topic", "partition", "at", "site"]
        assert class_name(after["at"]) == "java.lang.Long"

    def test_an_existing_field_is_overwritten_without_a_schema_only(self) -> None:
        insert = InsertField(Side.VALUE, topic=InsertedField("name"))

        assert changed(insert, schemaless({"name": 1})) == {"name": "orders"}
        with pytest.raises(DataError, match="field name duplication name"):
            apply(insert, with_schema(person()))

    def test_with_a_schema_the_time_is_a_timestamp(self) -> None:
        after = changed(self.ALL, with_schema(person()))

        assert isinstance(after, Struct)
        assert after.values["at"] == Moment(1_700_000_000_000)
        assert [(each.name, each.schema.optional) for each in after.schema.fields[3:]] == [
            ("topic", False),
            ("partition", True),
            ("at", True),
            ("site", True),
        ]
        assert after.schema.fields[5].schema.name == TIMESTAMP.name

    def test_a_record_without_a_timestamp_has_no_such_field(self) -> None:
        record = SmtRecord("orders", None, None, {})

        after = apply(self.ALL, record)

        assert after is not None
        assert after.value == {"topic": "orders", "site": "Berlin"}

    def test_a_tombstone_passes_and_bytes_as_mirror_maker_has_them_fail(self) -> None:
        assert changed(self.ALL, schemaless(None)) is None
        assert changed(self.ALL, with_schema(None, person().schema)) is None
        record = SmtRecord("t", value=b"x", value_schema=Schema(SchemaType.BYTES))
        with pytest.raises(DataError, match=r"Only Struct objects supported for \[field insertion\], found: \[B"):
            apply(self.ALL, record)


class TestReplaceField:
    def test_exclusion_inclusion_and_renames(self) -> None:
        replace = ReplaceField(Side.VALUE, frozenset({"dont"}), frozenset({"abc", "foo"}), {"abc": "xyz", "foo": "bar"})
        record = schemaless({"dont": "whatever", "abc": 42, "foo": True, "etc": "etc"})
        exclusion_wins = ReplaceField(Side.VALUE, frozenset({"a"}), frozenset({"a", "b"}))

        assert changed(replace, record) == {"xyz": 42, "bar": True}
        assert changed(exclusion_wins, schemaless({"a": 1, "b": 2, "c": 3})) == {"b": 2}
        assert changed(exclusion_wins, schemaless(None)) is None, "a tombstone passes"

    def test_order_stays_and_a_rename_stands_where_the_old_name_stood(self) -> None:
        after = changed(ReplaceField(Side.VALUE, renames={"b": "x"}), schemaless({"c": 1, "b": 2, "a": 3}))

        assert isinstance(after, dict)
        assert list(after) == ["c", "x", "a"]

    def test_a_schema_is_rewritten_and_keeps_its_name_but_not_its_optionality(self) -> None:
        schema = struct_schema([Field("name", STRING), Field("born", DATE)])
        named = Schema(SchemaType.STRUCT, optional=True, name="person", version=2, doc="d", fields=schema.fields)
        record = with_schema(Struct.of(named, [("name", "Ada"), ("born", Moment(0))]))

        after = changed(ReplaceField(Side.VALUE, frozenset({"born"}), renames={"name": "called"}), record)

        expected = Schema(SchemaType.STRUCT, name="person", version=2, doc="d", fields=(Field("called", STRING),))
        assert after == Struct(expected, {"called": "Ada"})

    def test_two_fields_of_one_name_fail_with_a_schema(self) -> None:
        with pytest.raises(DataError, match="duplication age"):
            apply(ReplaceField(Side.VALUE, renames={"name": "age"}), with_schema(person()))
