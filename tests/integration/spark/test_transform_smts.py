"""Connect's transforms as a stage of Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_lib.features.transforms.model import Transform, TransformChain
from mirror_lib.features.transforms.record_mark import read_mark
from mirror_lib.features.transforms.smt.chain import SmtChain
from tests.support.smt_chains import smt_chain
from tests.support.spark.frames import PLACE, Given, Made, expressions, frame, like, made_of

VIENNA = Given(b'{"country": "AT", "card": "4711"}', b"k", (("h", b"1"), ("h", None)))
TOMBSTONE = Given(None, b"deleted")
MASK = {"type": "MaskField$Value", "fields": "card", "predicate": "tombstone", "negate": "true"}
DROP = {"type": "Filter", "predicate": "tombstone"}
ROUTE = {"type": "RegexRouter", "regex": r"A\.(.*)", "replacement": "B.$1"}
HEADER = {"type": "InsertHeader", "header": "new", "value.literal": "x"}


def _made(spark: SparkSession, smts: SmtChain, *records: Given, after: tuple[Transform, ...] = ()) -> list[Made]:
    return made_of(frame(spark, *records), TransformChain(after, smts))


def test_records_are_changed_and_dropped_and_the_others_stay(spark: SparkSession) -> None:
    found = _made(spark, smt_chain(DROP, MASK, value="json"), TOMBSTONE, VIENNA, TOMBSTONE)

    assert found == [replace(like(VIENNA, 101), value=b'{"country":"AT","card":""}')]


def test_a_router_sees_the_remote_topic(spark: SparkSession) -> None:
    found = _made(spark, smt_chain(ROUTE), VIENNA)

    assert found == [replace(like(VIENNA), topic="B.orders")]


def test_headers_are_added_and_taken_away(spark: SparkSession) -> None:
    added = _made(spark, smt_chain(HEADER, header="simple"), TOMBSTONE)
    dropped = _made(
        spark,
        smt_chain({"type": "DropHeaders", "headers": "h"}),
        replace(VIENNA, headers=(*VIENNA.headers, ("i", b"\xff"))),
    )

    assert added == [replace(like(TOMBSTONE), headers=(("new", b"x"),))]
    assert dropped == [replace(like(VIENNA), headers=(("i", b"\xff"),))]


def test_our_own_transforms_come_after(spark: SparkSession) -> None:
    keyed = expressions(key="topic", filter="value IS NOT NULL")

    assert _made(spark, smt_chain(ROUTE), VIENNA, TOMBSTONE, after=(keyed,)) == [
        replace(like(VIENNA), key=b"B.orders", topic="B.orders")
    ]


def test_a_record_that_cannot_be_taken_is_named(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as caught:
        _made(spark, smt_chain(MASK, value="json"), VIENNA, Given(b"{"))

    found = read_mark(str(caught.value))
    assert found[:2] == (PLACE, 101)
    assert found.what.startswith(
        "topic orders, partition 1, offset 101: value.converter (JsonConverter) cannot transform the record"
    )
