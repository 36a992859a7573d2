"""Registries of keys and values with schema ids; what Spark makes with them is in `integration/spark`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms import model
from mirror_lib.features.transforms.model import DataFormat
from mirror_lib.features.transforms.schema_use.registry_sides import (
    SchemaRenumbering,
    SideReader,
    SideRenumbering,
    access_of,
    reader_of,
)
from mirror_lib.features.transforms.schemas.errors import SchemaMissingError, SchemaRegistryUnreachableError
from mirror_lib.features.transforms.schemas.model import Schema, SchemaType
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import BasicLogin, RegistryAccess
from spark_jobs.sealing import seal
from spark_jobs.transforms.registry_tasks import decode_sides
from tools.testbed.schema_registry import LocalSchemaRegistry

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


def test_a_subject_of_another_format_is_refused_and_the_login_is_used(source: LocalSchemaRegistry) -> None:
    client(source).register("orders-value", NUMBER)

    with pytest.raises(ConfigurationError, match=r"orders-value is AVRO, but decode\.value is protobuf"):
        reader_of("value", DataFormat.PROTOBUF, model.SchemaRegistry((source.url,)), TOPICS)
    assert access_of(model.SchemaRegistry(("https://r",), "ann", "secret")).login == BasicLogin("ann", "secret")
    assert access_of(model.SchemaRegistry(("https://r",))).login is None


def test_a_registry_that_does_not_answer_is_no_fault_of_the_record() -> None:
    access = RegistryAccess(("http://127.0.0.1:1",), attempts=1)
    gone = SideReader("value", DataFormat.AVRO, access, {"orders": 1})
    rows = pa.record_batch({"value": pa.array([b"\0\0\0\0\1\0"]), "__mirror_from": pa.array(["orders"])})

    with pytest.raises(SchemaRegistryUnreachableError):
        list(decode_sides(*seal([("__mirror_decoded_value", gone)]), [rows]))


def test_ids_are_asked_for_once_and_one_that_a_registry_lacks_is_told(
    source: LocalSchemaRegistry, target: LocalSchemaRegistry
) -> None:
    number = client(source).register("orders-value", NUMBER)
    renumbering = SchemaRenumbering(
        SideRenumbering("value", RegistryAccess((source.url,)), RegistryAccess((target.url,)), TOPICS)
    )

    with pytest.raises(SchemaMissingError, match=r"the target's .* does not have .* under A\.orders-value"):
        renumbering.target_id("orders", number)
    client(target).register("other", Schema(SchemaType.AVRO, '"string"'))
    there = client(target).register("A.orders-value", NUMBER)
    assert renumbering.target_id("orders", number) == there
    asked = len(target.asked)
    assert renumbering.target_id("orders", number) == there
    assert len(target.asked) == asked
    assert [renumbering.renumber("orders", each) for each in (None, b"no id")] == [None, b"no id"]
    with pytest.raises(SchemaMissingError, match="the source's schema registry does not have"):
        renumbering.target_id("orders", 99)
