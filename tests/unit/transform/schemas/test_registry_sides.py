"""Keys and values with schema ids as tasks of Spark treat them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.schemas.avro import AvroCodec
from mirror_lib.schemas.errors import SchemaFormatError, SchemaMissingError, SchemaRegistryUnreachableError
from mirror_lib.schemas.model import Schema, SchemaType
from mirror_lib.schemas.registry import SchemaRegistry
from mirror_lib.schemas.rest import BasicLogin, RegistryAccess
from mirror_lib.transform import model
from mirror_lib.transform.model import DataFormat
from mirror_lib.transform.record_mark import UntransformableRecordError, read_mark
from mirror_lib.transform.schemas.registry_sides import (
    SchemaRenumbering,
    SideCodec,
    SideReader,
    SideRenumbering,
    access_of,
    column_of,
    reader_of,
)
from spark_jobs.sealing import seal
from spark_jobs.transforms.registry_tasks import REGISTRY_CLASSES, decode_sides, renumber_sides
from testbed.schema_registry import LocalSchemaRegistry

NUMBER = Schema(SchemaType.AVRO, json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}))
TOPICS = {"orders": "A.orders"}


@pytest.fixture
def source() -> Iterator[LocalSchemaRegistry]:
    with LocalSchemaRegistry() as registry:
        yield registry


@pytest.fixture
def target() -> Iterator[LocalSchemaRegistry]:
    with LocalSchemaRegistry() as registry:
        yield registry


def client(registry: LocalSchemaRegistry) -> SchemaRegistry:
    return SchemaRegistry(RegistryAccess((registry.url,)))


def reader(registry: LocalSchemaRegistry) -> SideReader:
    client(registry).register("orders-value", NUMBER)
    return reader_of("value", DataFormat.AVRO, model.SchemaRegistry((registry.url,)), TOPICS)


def batch(*values: bytes | None) -> pa.RecordBatch:
    """Values as they stand between two transforms, with the offsets from 0 on."""
    count = len(values)
    sources = pa.array(
        [{"place": 3, "offset": row} for row in range(count)], pa.struct({"place": pa.int32(), "offset": pa.int64()})
    )
    return pa.record_batch(
        {
            "value": pa.array(values, pa.binary()),
            "partition": pa.array([7] * count, pa.int32()),
            "__mirror_from": pa.array(["orders"] * count),
            "__mirror_source": sources,
        }
    )


def test_the_latest_version_of_the_subject_is_read_by_with_the_login(source: LocalSchemaRegistry) -> None:
    client(source).register("orders-value", Schema(SchemaType.AVRO, '"string"'))

    found = reader(source)

    assert found.ids == {"orders": 2}
    assert column_of(found).kind == pa.struct({"a": pa.int32()})
    with pytest.raises(ConfigurationError, match=r"orders-value is AVRO, but decode\.value is protobuf"):
        reader_of("value", DataFormat.PROTOBUF, model.SchemaRegistry((source.url,)), TOPICS)
    assert access_of(model.SchemaRegistry(("https://r",), "ann", "secret")).login == BasicLogin("ann", "secret")
    assert access_of(model.SchemaRegistry(("https://r",))).login is None


def test_a_value_is_decoded_and_encoded(source: LocalSchemaRegistry) -> None:
    codec = SideCodec(reader(source), "orders")
    framed = AvroCodec(client(source)).encode(1, {"a": 5})

    assert codec.decode(framed) == {"a": 5}
    assert codec.encode({"a": 5}) == framed
    assert codec.decode(None) is codec.encode(None) is None


def test_a_value_that_does_not_fit_is_refused(source: LocalSchemaRegistry, subtests: pytest.Subtests) -> None:
    codec = SideCodec(reader(source), "orders")
    for value in [{"a": None}, {"a": "x"}, {"b": 1}, {"a": 1, "b": 1}]:
        with subtests.test(value=value), pytest.raises(SchemaFormatError):
            codec.encode(value)


def test_a_task_adds_the_decoded_column(source: LocalSchemaRegistry) -> None:
    sealed = seal([("__mirror_decoded_value", reader(source))], REGISTRY_CLASSES)
    framed = AvroCodec(client(source)).encode(1, {"a": 5})

    [made] = decode_sides(*sealed, [batch(framed, None)])

    assert made.column("__mirror_decoded_value").to_pylist() == [{"a": 5}, None]
    assert made.drop_columns(["__mirror_decoded_value"]) == batch(framed, None)


def test_a_record_is_named_for_its_own_fault_only(source: LocalSchemaRegistry) -> None:
    sealed = seal([("__mirror_decoded_value", reader(source))], REGISTRY_CLASSES)
    with pytest.raises(UntransformableRecordError) as caught:
        list(decode_sides(*sealed, [batch(None, b"text")]))
    assert read_mark(str(caught.value)) is not None
    assert caught.value.what.startswith("[mirror-record place=3 offset=1] topic orders, partition 7, offset 1: ")

    access = RegistryAccess(("http://127.0.0.1:1",), attempts=1)
    gone = SideReader("value", DataFormat.AVRO, access, {"orders": 1})
    with pytest.raises(SchemaRegistryUnreachableError):
        list(decode_sides(*seal([("__mirror_decoded_value", gone)], REGISTRY_CLASSES), [batch(b"\0\0\0\0\1\0")]))


def test_ids_are_asked_for_once_and_rewritten(source: LocalSchemaRegistry, target: LocalSchemaRegistry) -> None:
    number = client(source).register("orders-value", NUMBER)
    client(target).register("other", Schema(SchemaType.AVRO, '"string"'))
    there = client(target).register("A.orders-value", NUMBER)
    sides = SideRenumbering("value", RegistryAccess((source.url,)), RegistryAccess((target.url,)), TOPICS)
    framed = AvroCodec(client(source)).encode(number, {"a": 5})

    [made] = renumber_sides(*seal([sides], REGISTRY_CLASSES), [batch(framed, None, b"no id", framed)])
    rewritten = AvroCodec(client(target)).encode(there, {"a": 5})
    renumbering = SchemaRenumbering(sides)
    first = renumbering.target_id("orders", number)
    asked = len(target.asked)
    second = renumbering.target_id("orders", number)
    asked_again = len(target.asked) - asked

    assert made.column("value").to_pylist() == [rewritten, None, b"no id", rewritten]
    assert first == second == there
    assert asked_again == 0


def test_an_id_that_a_registry_lacks_is_told(source: LocalSchemaRegistry, target: LocalSchemaRegistry) -> None:
    number = client(source).register("orders-value", NUMBER)
    renumbering = SchemaRenumbering(
        SideRenumbering("value", RegistryAccess((source.url,)), RegistryAccess((target.url,)), TOPICS)
    )

    with pytest.raises(
        SchemaMissingError, match=r"the target's schema registry does not have .* under A\.orders-value"
    ):
        renumbering.target_id("orders", number)
    with pytest.raises(SchemaMissingError, match="the source's schema registry does not have"):
        renumbering.target_id("orders", 99)
