"""A stage tells rows that have ended from rows that broke off, whatever failed before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support.frame_functions import fails_at_last
from tests.support.spark.ended_rows import counting
from tests.support.waiting import wait_for

ROWS = 3000
_SCHEMA = "id bigint, text string"


def told(path: Path) -> str:
    """What the stage wrote down; the worker may still be at it when Spark has given up."""
    wait_for(lambda: path.exists() and path.read_text())
    return path.read_text()


@pytest.fixture(autouse=True)
def small_batches(spark: SparkSession) -> Iterator[None]:
    """What Spark has not sent yet when a row fails, it never sends."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "100")
    yield
    spark.conf.set(name, str(before))


def numbers(spark: SparkSession, rows: int = ROWS) -> DataFrame:
    return spark.range(0, rows, 1, 1).selectExpr("id", "repeat('x', 1000) as text")


@pytest.mark.parametrize("rows", [0, 1, ROWS])
def test_given_all_rows_when_they_end_then_the_stage_knows(spark: SparkSession, tmp_path: Path, rows: int) -> None:
    # Spark starts no worker where there is nothing; with one more row there is.
    made = numbers(spark, rows + 1).mapInArrow(counting(tmp_path / "end"), "rows bigint")

    assert made.toArrow().column(0).to_pylist() == [rows + 1]
    assert told(tmp_path / "end") == "ended"


@pytest.mark.parametrize("fails_at", [1500, ROWS - 1])
def test_given_an_expression_that_fails_when_rows_stop_then_the_stage_knows_that_they_broke_off(
    spark: SparkSession, tmp_path: Path, fails_at: int
) -> None:
    fails = f"if(id = {fails_at}, raise_error('no') + 0, id)"
    made = (
        numbers(spark)
        .selectExpr(f"cast({fails} as bigint) as id", "text")
        .mapInArrow(counting(tmp_path / "end"), "rows bigint")
    )

    with pytest.raises((PySparkException, Py4JError)):
        made.toArrow()

    assert told(tmp_path / "end") != "ended"


def test_given_a_stage_in_python_that_fails_when_rows_stop_then_the_one_behind_it_knows(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = numbers(spark).mapInArrow(fails_at_last, _SCHEMA).mapInArrow(counting(tmp_path / "end"), "rows bigint")

    with pytest.raises((PySparkException, Py4JError)):
        made.toArrow()

    assert told(tmp_path / "end") != "ended"
