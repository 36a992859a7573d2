"""Users' Python functions on a real Spark: what they may do with records, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import DecodeSettings, FunctionKind, TransformChain
from mirror_lib.features.transforms.record_mark import read_mark
from spark_jobs.transforms.frame import frame_of
from tests.support import frame_functions as functions
from tests.support.spark.frames import (
    FIRST_OFFSET,
    PLACE,
    Given,
    decoding,
    expressions,
    frame,
    function,
    json_by,
    like,
    named_function,
    transformed,
)

ORDERS = decoding(json_by("country STRING, card STRING"))
VIENNA = Given(b'{"country": "AT", "card": "4711", "unknown": [1]}', b"k", (("h", b"1"), ("h", None)))
BERLIN = Given(b'{"country":"de","card":null}', b"\xff\x00")
TOMBSTONE = Given(None, b"deleted")
RECORDS = (VIENNA, BERLIN, TOMBSTONE)
AS_THEY_WERE = [like(each, FIRST_OFFSET + number) for number, each in enumerate(RECORDS)]
ARROW = FunctionKind.ARROW


@pytest.mark.parametrize("decode", [DecodeSettings(), ORDERS], ids=["binary", "json"])
@pytest.mark.parametrize(
    ("called", "kind"),
    [
        (functions.unchanged, FunctionKind.DATAFRAME),
        (functions.through_arrow, FunctionKind.DATAFRAME),
        (functions.same_batch, ARROW),
    ],
)
def test_what_a_function_does_not_change_arrives_as_it_was(
    spark: SparkSession, called: Callable[..., Any], kind: FunctionKind, decode: DecodeSettings
) -> None:
    assert transformed(spark, RECORDS, function(called, kind, decode)) == AS_THEY_WERE


def test_a_function_may_filter_and_return_text(spark: SparkSession) -> None:
    found = transformed(spark, RECORDS, function(functions.countries, decode=ORDERS))

    assert found == [replace(AS_THEY_WERE[0], value=b"AT"), replace(AS_THEY_WERE[1], value=b"DE")]


def test_only_a_value_that_differs_is_written_anew(spark: SparkSession) -> None:
    found = transformed(spark, RECORDS, function(functions.lower_countries, decode=ORDERS))

    assert found == [replace(AS_THEY_WERE[0], value=b'{"country":"at","card":"4711"}'), *AS_THEY_WERE[1:]]


@pytest.mark.parametrize(
    ("called", "kind", "partition"),
    [(functions.rerouted, FunctionKind.DATAFRAME, 2), (functions.rerouted_batch, ARROW, None)],
)
def test_a_function_may_set_topic_and_partition(
    spark: SparkSession, called: Callable[..., Any], kind: FunctionKind, partition: int | None
) -> None:
    found = transformed(spark, RECORDS, function(called, kind))

    assert found == [replace(each, topic="elsewhere", partition=partition) for each in AS_THEY_WERE]


def test_what_was_set_before_a_function_stays_set(spark: SparkSession) -> None:
    found = transformed(spark, [VIENNA], expressions(topic="'first'", partition="9"), function(functions.unchanged))

    assert found == [replace(AS_THEY_WERE[0], topic="first", partition=9)]


def test_a_function_may_make_several_records_of_one(spark: SparkSession) -> None:
    frames = transformed(spark, RECORDS, function(functions.doubled))
    batches = transformed(spark, RECORDS, function(functions.doubled_batch, ARROW))

    assert frames == [replace(each, partition=number) for each in AS_THEY_WERE for number in (0, 5)]
    assert batches == [each for each in AS_THEY_WERE for _ in range(2)]


def test_a_function_of_batches_may_filter(spark: SparkSession) -> None:
    found = transformed(spark, RECORDS, function(functions.even_offsets, ARROW, ORDERS))

    assert found == [AS_THEY_WERE[0], AS_THEY_WERE[2]]


def test_a_function_of_batches_may_return_text_for_documents(spark: SparkSession) -> None:
    found = transformed(spark, RECORDS, function(functions.country_texts, ARROW, ORDERS))

    assert [each.value for each in found] == [b"AT", b"de", None]


def test_a_function_of_batches_may_work_on_text(spark: SparkSession) -> None:
    found = transformed(
        spark, [Given("ä".encode()), TOMBSTONE], function(functions.upper_texts, ARROW, decoding("string"))
    )

    assert [each.value for each in found] == ["Ä".encode(), None]


@pytest.mark.parametrize(
    ("called", "said"),
    [
        (functions.without_source, "does not return the column __mirror_source"),
        (functions.other_source, "changes __mirror_source"),
        (functions.without_headers, "does not return the columns headers"),
        (functions.no_frame, "returns int"),
        (functions.failing, "failed with KeyError: 'country'"),
        (functions.unknown_column, r"mirror\.transform\.change\.function.*nothing"),
        (functions.ordered, "does not process records one by one.*Sort"),
        (functions.limited, "does not process records one by one.*Limit"),
        (functions.distinct, "does not process records one by one.*Aggregate"),
        (functions.numbered, "does not process records one by one.*Window"),
        (functions.joined, "does not process records one by one.*Join"),
        (functions.united, "does not process records one by one.*Union"),
        (functions.repartitioned, "does not process records one by one.*Exchange"),
        (functions.coalesced, "does not process records one by one.*Coalesce"),
    ],
)
def test_functions_that_do_not_fit_are_refused_before_anything_is_read(
    spark: SparkSession, called: Callable[..., Any], said: str
) -> None:
    # Records that the driver holds Spark would limit and sort while it plans.
    source = functions.through_arrow(frame(spark, *RECORDS))

    with pytest.raises(ConfigurationError, match=said):
        frame_of(source, TransformChain((function(called),)), target_topic_of=str)


@pytest.mark.parametrize("path", ["tests.support.frame_functions.nothing", "tests.support.no_module.f", "os.sep"])
def test_a_function_that_cannot_be_imported_is_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be imported|is not a function"):
        transformed(spark, RECORDS, named_function(path, FunctionKind.DATAFRAME))


@pytest.mark.parametrize(
    ("called", "said"),
    [
        (functions.batch_without_source, "does not return the column __mirror_source"),
        (functions.batch_without_value, "does not return the column value"),
        (functions.reversed_batch, "returns rows in another order"),
        (functions.numbers_as_keys, "returns key of the type int64"),
        (functions.table, "returns Table"),
        (functions.one_at_a_time, "failed with ValueError: too many. Each of the records alone is accepted"),
    ],
)
def test_batches_that_do_not_fit_are_refused(spark: SparkSession, called: Callable[..., Any], said: str) -> None:
    with pytest.raises(PySparkException, match=said) as caught:
        transformed(spark, RECORDS, function(called, ARROW))

    assert read_mark(str(caught.value)) is None


def test_a_record_that_a_function_of_batches_cannot_take_is_named(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as caught:
        transformed(spark, RECORDS, function(functions.no_tombstones, ARROW))

    found = read_mark(str(caught.value))
    assert found[:2] == (PLACE, FIRST_OFFSET + 2)
    assert found.what == "topic orders, partition 1, offset 102: ValueError: there is a tombstone"
