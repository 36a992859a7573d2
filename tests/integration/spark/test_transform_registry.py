"""Keys and values with schema ids through transforms on a real Spark, with real registries."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms import model
from mirror_lib.features.transforms.model import FunctionKind, Transform, TransformChain
from mirror_lib.features.transforms.record_mark import read_mark
from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.model import Schema, SchemaType
from mirror_lib.features.transforms.schemas.protobuf import ProtobufCodec
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import RegistryAccess
from tests.support import frame_functions as functions
from tests.support.spark.frames import PLACE, Given, Made, decoding, expressions, frame, function, like, made_of, select
from tools.testbed.schema_registry import LocalSchemaRegistry

AVRO = decoding("avro")
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "country", "type": "string"},
        {"name": "card", "type": ["null", "string"], "default": None},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}}},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {"name": "any", "type": ["null", "string", "long"]},
    ],
}  # fmt: skip
VIENNA = {
    "country": "AT",
    "card": "4711",
    "sum": Decimal("12.50"),
    "at": datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
    "lines": [{"n": 1}, {"n": 2}],
    "tags": {"a": 2**40},
    "any": 5,
}
MASKED = (
    "named_struct('country', value.country, 'card', '***', 'sum', value.sum, 'at', value.at, 'lines', value.lines, "
    "'tags', value.tags, 'any', value.any)"
)


class Registries:
    """A source's and a target's, where ids differ."""

    def __init__(self, source: LocalSchemaRegistry, target: LocalSchemaRegistry) -> None:
        self.source, self.target = (SchemaRegistry(RegistryAccess((each.url,))) for each in (source, target))
        self.avro, self.protobuf = AvroCodec(self.source), ProtobufCodec(self.source)
        self._settings = [model.SchemaRegistry((each.url,)) for each in (source, target)]

    def register(self, schema: Any, subject: str = "orders-value") -> int:
        return self.source.register(subject, Schema(SchemaType.AVRO, json.dumps(schema)))

    def chain(self, *transforms: Transform, renumber: bool = False) -> TransformChain:
        return TransformChain(transforms, None, self._settings[0], self._settings[1] if renumber else None)


@pytest.fixture
def registries() -> Iterator[Registries]:
    with LocalSchemaRegistry() as source, LocalSchemaRegistry() as target:
        yield Registries(source, target)


def test_an_order_is_filtered_by_its_fields_and_stays_as_it_was(spark: SparkSession, registries: Registries) -> None:
    number = registries.register(ORDER)
    records = [
        Given(registries.avro.encode(number, VIENNA)),
        Given(registries.avro.encode(number, VIENNA | {"country": "DE", "card": None, "any": "x"})),
        Given(None, b"deleted"),
    ]
    condition = "value.lines[1].n = 2 AND value.tags['a'] = 1099511627776 AND value.sum = 12.5 AND value.at < now()"
    kept = expressions(AVRO, f"value IS NULL OR ({condition} AND value.any.member0 = 'x')")

    assert made_of(frame(spark, *records), registries.chain(kept)) == [like(records[1], 101), like(records[2], 102)]


@pytest.mark.parametrize(
    "transform", [expressions(AVRO, value=MASKED), select(f"SELECT {MASKED} AS value FROM records", AVRO)]
)
def test_what_is_set_is_written_by_the_schema(
    spark: SparkSession, registries: Registries, transform: Transform
) -> None:
    number = registries.register(ORDER)
    records = [Given(registries.avro.encode(number, VIENNA), b"k"), Given(None, b"deleted")]

    first, second = made_of(frame(spark, *records), registries.chain(transform))

    assert registries.avro.decode(first.value or b"") == VIENNA | {"card": "***"}
    assert second == like(records[1], 101)


def test_the_next_transform_reads_what_this_one_wrote(spark: SparkSession, registries: Registries) -> None:
    record = Given(registries.avro.encode(registries.register(ORDER), VIENNA))
    chain = registries.chain(expressions(AVRO, value=MASKED), expressions(AVRO, key="value.card"))

    assert made_of(frame(spark, record), chain)[0].key == b"***"


def test_older_versions_get_the_defaults_of_the_latest_one(spark: SparkSession, registries: Registries) -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "gone", "type": "int"}]}
    new = {"type": "record", "name": "R", "fields": [
        {"name": "a", "type": "long"}, {"name": "b", "type": ["string", "null"], "default": "none"}]}  # fmt: skip
    first = registries.register(old)
    second = registries.register(new)
    record = Given(registries.avro.encode(first, {"a": 1, "gone": 2}))

    [made] = made_of(frame(spark, record), registries.chain(expressions(AVRO, value="value", key="value.b")))

    assert made.key == b"none"
    assert made.value == registries.avro.encode(second, {"a": 1, "b": "none"})


def test_keys_of_a_plain_type_are_written_by_it_too(spark: SparkSession, registries: Registries) -> None:
    number = registries.register("string", "orders-key")
    record = Given(b"v", registries.avro.encode(number, "berlin"))

    [made] = made_of(
        frame(spark, record), registries.chain(expressions(decoding(key="avro"), key="upper(key)", topic="key"))
    )

    assert made == Made(100, b"v", registries.avro.encode(number, "BERLIN"), topic="berlin")


@pytest.mark.parametrize(
    ("called", "kind"),
    [(functions.unchanged, FunctionKind.DATAFRAME), (functions.same_batch, FunctionKind.ARROW)],
)
def test_what_a_function_does_not_change_keeps_its_bytes(
    spark: SparkSession, registries: Registries, called: Any, kind: FunctionKind
) -> None:
    number = registries.register(ORDER)
    # A long may be written in more bytes than it needs; written anew it would have fewer.
    wordy = registries.avro.encode(number, VIENNA | {"any": 0})[:-1] + b"\x80\x00"

    [made] = made_of(frame(spark, Given(wordy)), registries.chain(function(called, kind, AVRO)))

    assert made.value == wordy


@pytest.mark.parametrize("kind", [FunctionKind.DATAFRAME, FunctionKind.ARROW])
def test_a_function_may_return_text_for_a_record(
    spark: SparkSession, registries: Registries, kind: FunctionKind
) -> None:
    record = Given(registries.avro.encode(registries.register(ORDER), VIENNA))
    called = functions.countries if kind is FunctionKind.DATAFRAME else functions.country_texts

    [made] = made_of(frame(spark, record), registries.chain(function(called, kind, AVRO)))

    assert made.value == b"AT"


def test_text_and_bytes_are_written_as_they_are(spark: SparkSession, registries: Registries) -> None:
    record = Given(registries.avro.encode(registries.register(ORDER), VIENNA))

    [made] = made_of(frame(spark, record), registries.chain(expressions(AVRO, value="to_json(struct(value.any))")))

    assert made.value == b'{"any":{"member1":5}}'


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("struct(value.country)", "is missing the fields any, at, lines, sum, tags"),
        ("struct(value.*, 1 AS more)", "has the fields more, which are not in its schema"),
    ],
)
def test_other_fields_than_the_schemas_are_refused_before_anything_is_read(
    spark: SparkSession, registries: Registries, expression: str, said: str
) -> None:
    registries.register(ORDER)

    with pytest.raises(ConfigurationError, match=said):
        made_of(frame(spark, Given(b"")), registries.chain(expressions(AVRO, value=expression)))


@pytest.mark.parametrize("value", [b"", b"text", b"\0\0\0\0\x01", b"\0\0\0\0\x63\x00"])
def test_a_record_that_cannot_be_decoded_is_named(spark: SparkSession, registries: Registries, value: bytes) -> None:
    good = Given(registries.avro.encode(registries.register(ORDER), VIENNA))

    with pytest.raises(PySparkException) as caught:
        made_of(frame(spark, good, Given(value)), registries.chain(expressions(AVRO, key="value.country")))

    found = read_mark(str(caught.value))
    assert found[:2] == (PLACE, 101)
    assert found.what.startswith("topic orders, partition 1, offset 101: ")


def test_a_value_that_the_schema_cannot_hold_is_named(spark: SparkSession, registries: Registries) -> None:
    number = registries.register({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    records = [Given(registries.avro.encode(number, {"a": 1})), Given(registries.avro.encode(number, {"a": 2**31 - 1}))]
    doubled = expressions(AVRO, value="struct(CAST(value.a AS BIGINT) * 2 AS a)")

    with pytest.raises(PySparkException) as caught:
        made_of(frame(spark, *records), registries.chain(doubled))

    found = read_mark(str(caught.value))
    assert found.offset == 101


def test_a_topic_without_a_subject_is_refused(spark: SparkSession, registries: Registries) -> None:
    with pytest.raises(ConfigurationError, match="has no subject orders-value"):
        made_of(frame(spark, Given(b"")), registries.chain(expressions(AVRO, key="value.a")))


def test_topics_with_different_types_are_refused_and_with_one_type_are_not(
    spark: SparkSession, registries: Registries
) -> None:
    number = registries.register(ORDER)
    other = registries.register({**ORDER, "doc": "The same."}, "returns-value")
    registries.register("string", "texts-value")
    records = [
        Given(registries.avro.encode(number, VIENNA)),
        Given(registries.avro.encode(other, VIENNA), topic="returns"),
    ]
    chain = registries.chain(expressions(AVRO, value=MASKED))

    made = made_of(frame(spark, *records), chain, {"orders": "A.orders", "returns": "A.returns"})

    assert [(each.value or b"")[:5] for each in made] == [b"\0\0\0\0" + bytes([each]) for each in (number, other)]
    with pytest.raises(ConfigurationError, match="orders and texts have different schemas"):
        made_of(frame(spark, *records), chain, {"orders": "A.orders", "texts": "A.texts"})


@pytest.mark.parametrize("transform", [expressions(AVRO, "value.country IS NOT NULL"), expressions(AVRO, value=MASKED)])
def test_ids_become_those_of_the_target(spark: SparkSession, registries: Registries, transform: Transform) -> None:
    number = registries.register(ORDER)
    registries.target.register("another-value", Schema(SchemaType.AVRO, '"string"'))
    there = registries.target.register("A.orders-value", Schema(SchemaType.AVRO, json.dumps(ORDER)))
    record = Given(registries.avro.encode(number, VIENNA))

    [made] = made_of(frame(spark, record), registries.chain(transform, renumber=True))

    assert number != there
    assert made.value is not None
    assert made.value[:5] == b"\0\0\0\0" + bytes([there])
    assert AvroCodec(registries.target).decode(made.value)["country"] == "AT"


def test_a_schema_that_the_target_lacks_is_named(spark: SparkSession, registries: Registries) -> None:
    record = Given(registries.avro.encode(registries.register(ORDER), VIENNA))

    with pytest.raises(PySparkException, match=r"target's schema registry does not have .* of orders-value") as caught:
        made_of(frame(spark, record), registries.chain(expressions(AVRO, "true"), renumber=True))

    assert read_mark(str(caught.value)) is not None


def _orders_file() -> FileDescriptorProto:
    kinds = FieldDescriptorProto
    built = FileDescriptorProto(name="any.proto", package="shop", syntax="proto3")
    order = built.message_type.add(name="Order")
    order.field.add(name="country", number=1, type=kinds.TYPE_STRING, label=1)
    order.field.add(name="count", number=2, type=kinds.TYPE_UINT64, label=1)
    order.field.add(name="note", number=3, type=kinds.TYPE_STRING, label=1, proto3_optional=True, oneof_index=0)
    order.oneof_decl.add(name="_note")
    order.field.add(name="lines", number=4, type=kinds.TYPE_MESSAGE, label=3, type_name=".shop.Line")
    order.field.add(name="state", number=5, type=kinds.TYPE_ENUM, label=1, type_name=".shop.State")
    order.field.add(name="tags", number=6, type=kinds.TYPE_MESSAGE, label=3, type_name=".shop.Order.TagsEntry")
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT64, label=1)
    built.message_type.add(name="Line").field.add(name="sku", number=1, type=kinds.TYPE_INT32, label=1)
    state = built.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    return built


def test_protobuf_goes_the_same_way(spark: SparkSession, registries: Registries) -> None:
    text = base64.b64encode(_orders_file().SerializeToString()).decode()
    number = registries.source.register("orders-value", Schema(SchemaType.PROTOBUF, text))
    order = {"country": "AT", "count": str(2**64 - 1), "lines": [{"sku": 7}], "state": "PAID", "tags": {"a": "5"}}
    record = Given(registries.protobuf.from_json(number, order))
    masked = expressions(
        decoding("protobuf"),
        filter="value.note IS NULL AND value.count = 18446744073709551615 AND value.lines[0].sku = 7",
        value="struct(lower(value.country) AS country, 'x' AS note, value.lines, value.state, value.tags)",
        key="value.state",
    )

    [made] = made_of(frame(spark, record, Given(None)), registries.chain(masked))

    assert made.key == b"PAID"
    assert registries.protobuf.to_json(made.value or b"") == {
        "country": "at", "note": "x", "lines": [{"sku": 7}], "state": "PAID", "tags": {"a": "5"}
    }  # fmt: skip
    assert made_of(frame(spark, record), registries.chain(expressions(decoding("protobuf"), "true"))) == [like(record)]


def test_protobuf_that_cannot_be_decoded_is_named(spark: SparkSession, registries: Registries) -> None:
    text = base64.b64encode(_orders_file().SerializeToString()).decode()
    number = registries.source.register("orders-value", Schema(SchemaType.PROTOBUF, text))
    # Another message type of the schema, and bytes that end too early.
    for value in (bytes([0, 0, 0, 0, number, 2, 2, 8, 7]), bytes([0, 0, 0, 0, number, 0, 10, 9])):
        with pytest.raises(PySparkException) as caught:
            made_of(
                frame(spark, replace(Given(), value=value)),
                registries.chain(expressions(decoding("protobuf"), key="value.country")),
            )

        assert read_mark(str(caught.value)) is not None
