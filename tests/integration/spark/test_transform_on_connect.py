"""The same transforms in a session of a Spark Connect server, whose client has no Java."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.demo.ports import free_ports
from mirror_lib.features.demo.spark_connect import SparkConnectServer
from mirror_lib.features.transforms import model
from mirror_lib.features.transforms.model import FunctionKind, TransformChain
from mirror_lib.features.transforms.record_mark import read_mark
from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.model import Schema, SchemaType
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import RegistryAccess
from spark_jobs.transforms.frame import frame_of
from tests.support import frame_functions as functions
from tests.support.spark.frames import (
    PLACE,
    Given,
    decoding,
    expressions,
    frame,
    function,
    json_by,
    like,
    made_of,
    select,
    transformed,
)
from tools.testbed.schema_registry import LocalSchemaRegistry

_PROJECT = Path(__file__).resolve().parents[3]
_MODE = "SPARK_CONNECT_MODE_ENABLED"
ORDERS = decoding(json_by("country STRING, card STRING"))
VIENNA = Given(b'{"country": "AT", "card": "4711", "unknown": 1}', b"k", (("h", b"1"), ("h", None)))
TOMBSTONE = Given(None, b"deleted")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of a server; other tests of this process have a Spark of their own."""
    server = SparkConnectServer(tmp_path_factory.mktemp("connect"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_PROJECT))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.delenv(_MODE, raising=False)
        address = server.start(master="local[1]", port=free_ports(1)[0])
        try:
            session = ConnectSession(connection=address.url)
            yield session  # type: ignore[misc]
            session.client.close()
        finally:
            server.stop()
            os.environ.pop(_MODE, None)


def test_expressions(spark: SparkSession) -> None:
    changed = expressions(
        ORDERS, "records.value.country = 'AT'", value="struct(value.country)", topic="lower(value.country)"
    )

    assert transformed(spark, [VIENNA, TOMBSTONE], changed) == [
        replace(like(VIENNA), value=b'{"country":"AT"}', topic="at")
    ]


def test_a_file_cannot_be_read_as_a_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    reading = expressions(value=f"(SELECT max(value) FROM text.`{tmp_path / 'secret'}`)")

    with pytest.raises(ConfigurationError, match="TABLE_OR_VIEW_NOT_FOUND"):
        transformed(spark, [VIENNA], reading)


def test_functions(spark: SparkSession) -> None:
    chain = (function(functions.countries, decode=ORDERS), function(functions.same_batch, FunctionKind.ARROW))

    assert transformed(spark, [VIENNA, TOMBSTONE], *chain) == [replace(like(VIENNA), value=b"AT")]


def test_what_spark_refuses_is_named_before_anything_is_read(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match=r"mirror\.transform\.change\.key.*contry"):
        transformed(spark, [VIENNA], expressions(ORDERS, key="value.contry"))
    with pytest.raises(ConfigurationError, match=r"mirror\.transform\.change\.sql\.file.*contry"):
        transformed(spark, [VIENNA], select("SELECT value.contry AS key FROM records", ORDERS))
    # Records that the driver holds Spark would sort while it plans.
    source = functions.through_arrow(frame(spark, VIENNA))
    with pytest.raises(ConfigurationError, match=r"does not process records one by one.*Sort"):
        frame_of(source, TransformChain((function(functions.ordered),)), target_topic_of=str)


def test_a_record_that_cannot_be_taken_is_named(spark: SparkSession) -> None:
    for chain in (function(functions.no_tombstones, FunctionKind.ARROW), expressions(ORDERS, key="value.country")):
        with pytest.raises(PySparkException) as caught:
            transformed(spark, [VIENNA, TOMBSTONE if chain.function else Given(b" ")], chain)

        found = read_mark(str(caught.value))
        assert found[:2] == (PLACE, 101)


def test_a_schema_registry(spark: SparkSession) -> None:
    with LocalSchemaRegistry() as local:
        registry = SchemaRegistry(RegistryAccess((local.url,)))
        text = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
        number = registry.register("orders-value", Schema(SchemaType.AVRO, text))
        codec = AvroCodec(registry)
        more = expressions(decoding("avro"), "value.a > 0", value="struct(value.a + 1 AS a)")
        chain = TransformChain((more,), None, model.SchemaRegistry((local.url,)))

        [made] = made_of(frame(spark, *(Given(codec.encode(number, {"a": each})) for each in (0, 5))), chain)

    assert made.value == codec.encode(number, {"a": 6})
