"""One Spark and one Spark Connect server for the files of this folder: a run on them costs a second, a start ten."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirror_lib.features.demo.driver_host import DriverHost
from mirror_lib.features.demo.ports import free_ports
from mirror_lib.features.demo.spark_connect import SparkConnectServer
from mirror_lib.spark.connect_server import ConnectAddress
from mirror_lib.spark.settings import SPARK_SETTINGS
from tests.support.kafka import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROJECT = Path(__file__).resolve().parents[3]
_COUNTRIES = ("DE", "FR", "IT")


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """A session on this machine, whose workers can import functions of tests."""
    from pyspark.sql import SparkSession

    settings = {**SPARK_SETTINGS, "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(_PROJECT))
        session = SparkSession.builder.master("local[2]").appName("transforms").config(map=settings).getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectAddress]:
    """A Spark Connect server: two tasks at a time, on every machine."""
    running = SparkConnectServer(tmp_path_factory.mktemp("spark"))
    try:
        yield running.start(master="local[2]", port=free_ports(1)[0])
    finally:
        running.stop()


@pytest.fixture(scope="package")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverHost]:
    host = DriverHost(tmp_path_factory.mktemp("drivers"))
    host.start()
    try:
        yield host
    finally:
        host.stop()


def payments(count: int, *, partition: int = 0) -> list[Record]:
    """JSON values with a country and a card number."""
    return [
        Record(
            key=b"payment-%d" % number,
            value=json.dumps(
                {"id": number, "country": _COUNTRIES[number % 3], "card": f"4000-{number:08}"}, separators=(",", ":")
            ).encode(),
            headers=(("trace", b"%d" % number), ("trace", b"again"), ("absent", None)),
            timestamp_ms=1_704_067_200_000 + number,
            partition=partition,
        )
        for number in range(count)
    ]


def transform(name: str, topic: str, /, **parts: str) -> dict[str, str]:
    """The settings of one transform of a topic; `__` in a name stands for a dot."""
    settings = {"topics": topic, **{key.replace("__", "."): value for key, value in parts.items()}}
    return {f"A->B.mirror.transform.{name}.{key}": value for key, value in settings.items()}


def mask(name: str, topic: str) -> dict[str, str]:
    """A transform that leaves out payments from France, and hides the card of all others."""
    return transform(
        name,
        topic,
        decode__value="json",
        schema__value="id BIGINT, country STRING, card STRING",
        filter="value.country <> 'FR'",
        value="struct(value.id AS id, value.country AS country, '****' AS card)",
    )


def transforms(*settings: dict[str, str]) -> dict[str, str]:
    """The settings of several transforms, which are applied in this order."""
    merged = {key: value for each in settings for key, value in each.items()}
    names = dict.fromkeys(key.split(".")[3] for key in merged)
    return {"A->B.mirror.transforms": ", ".join(names), **merged}
