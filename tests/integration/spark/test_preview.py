"""What a preview tells of records: made, dropped and by which transform, failed and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.model import (
    ColumnExpressions,
    DecodeSettings,
    FunctionKind,
    Influence,
    NonDeterminism,
    Transform,
    TransformChain,
)
from mirror_lib.features.transforms.preview.preview import Becomes, Dropped, Fails, Outcome, PreviewResult, RecordPlace
from mirror_lib.features.transforms.rows.layout import READ_SCHEMA, place_of
from mirror_lib.records.header import Codec
from spark_jobs.preview import preview_with
from tests.support.smt_chains import smt_chain
from tests.support.spark.frames import Given, decoding, expressions, json_by, named_function

JSON = DecodeSettings(value=json_by("id BIGINT, country STRING, items ARRAY<STRING>"))


def rows(records: Mapping[RecordPlace, Given]) -> pa.Table:
    """Records as a sample has them."""
    return pa.Table.from_pylist(
        [
            {
                "key": each.key,
                "value": each.value,
                "topic": each.topic,
                "partition": place.partition,
                "offset": place.offset,
                "timestamp": each.timestamp,
                "timestampType": 0,
                "headers": [{"key": name, "value": content} for name, content in each.headers] or None,
                "__mirror_source": {"place": place_of(place.partition, Codec.NONE), "offset": place.offset},
            }
            for place, each in records.items()
        ],
        READ_SCHEMA,
    )


def numbered(*values: bytes | None) -> dict[RecordPlace, Given]:
    """Records of partition 3, from offset 50 on."""
    return {RecordPlace(3, 50 + number): Given(value=value) for number, value in enumerate(values)}


def previewed(spark: SparkSession, records: Mapping[RecordPlace, Given], chain: TransformChain) -> PreviewResult:
    return preview_with(spark, "A->B", {"orders": "A.orders"}, executor_wait_seconds=0.0)(chain, rows(records))


def outcomes(spark: SparkSession, values: Sequence[bytes | None], *transforms: Transform) -> list[Outcome]:
    records = numbered(*values)
    result = previewed(spark, records, TransformChain(transforms))
    return [result.outcome(place) for place in records]


def values_of(outcome: Outcome) -> list[bytes | None]:
    assert isinstance(outcome, Becomes), outcome
    return [made.value for made in outcome.records]


def error_of(outcome: Outcome) -> MirrorError:
    assert isinstance(outcome, Fails), outcome
    return outcome.error


def test_filters_that_depend_on_chance_when_previewed_then_none_of_them_is_named(spark: SparkSession) -> None:
    by_chance = Transform(
        "dice", filter="rand() > 2", non_determinism=(NonDeterminism("rand", Influence.RANDOM),), reads=None
    )
    never = expressions(filter="false", name="never")

    assert outcomes(spark, [b"a"], by_chance, never) == [Dropped(None)]
    assert outcomes(spark, [b"a"], by_chance) == [Dropped("dice")], "nothing else can have done it"


def test_records_that_fail_when_previewed_then_they_are_told_and_hide_no_others(spark: SparkSession) -> None:
    mask = expressions(JSON, value="struct(value.id AS id)", name="mask")

    found = outcomes(spark, [b"no JSON", b'{"id":1}', b"{", b'{"id":2}'], mask)

    assert [values_of(each) for each in (found[1], found[3])] == [[b'{"id":1}'], [b'{"id":2}']]
    for outcome, offset in ((found[0], 50), (found[2], 52)):
        error = error_of(outcome)
        assert (error.reason, error.where.topic) == ("transform", "orders")
        assert (error.where.partition, error.where.offset) == (3, offset)


@pytest.mark.parametrize("wrong", [{1}, {0, 4}, {0, 1, 2, 3, 4}])
def test_records_that_spark_does_not_name_when_previewed_then_they_are_found(
    spark: SparkSession, wrong: set[int]
) -> None:
    cast = expressions(decoding("string"), value="CAST(value AS BIGINT) + 1", name="cast")
    values = [b"x" if number in wrong else b"%d" % number for number in range(5)]

    found = outcomes(spark, values, cast)

    assert {number for number, outcome in enumerate(found) if isinstance(outcome, Fails)} == wrong
    assert [values_of(found[number]) for number in range(5) if number not in wrong] == [
        [b"%d" % (number + 1)] for number in range(5) if number not in wrong
    ]
    assert all("CAST" in error_of(found[number]).what for number in wrong)


def test_an_smt_that_cannot_take_a_record_when_previewed_then_its_own_words_are_told(spark: SparkSession) -> None:
    chain = smt_chain({"type": "MaskField$Value", "fields": "card"}, value="json")
    records = numbered(b"[1]", b'{"card":"4000"}')

    result = previewed(spark, records, TransformChain(smt=chain))

    failing, masked = (result.outcome(place) for place in records)
    assert "MaskField" in error_of(failing).what
    assert values_of(masked) == [b'{"card":""}']


def test_an_smt_that_drops_and_a_filter_when_previewed_then_the_smt_is_named(spark: SparkSession) -> None:
    chain = smt_chain({"type": "Filter", "predicate": "tombstone"})
    live = expressions(filter="value <> X'61'", name="live")
    records = numbered(None, b"a", b"b")

    result = previewed(spark, records, TransformChain((live,), smt=chain))

    assert [result.outcome(place) for place in records][:2] == [Dropped("t0"), Dropped("live")]


def test_a_record_that_could_not_be_written_when_previewed_then_it_fails(spark: SparkSession) -> None:
    timed = Transform("timed", columns=ColumnExpressions(timestamp="CAST(NULL AS TIMESTAMP)"), reads=None)

    (found,) = outcomes(spark, [b"v"], timed)

    assert "timestamp" in error_of(found).what


@pytest.mark.parametrize("kind", list(FunctionKind))
def test_a_function_that_is_not_there_when_previewed_then_it_is_told_once_and_not_of_each_record(
    spark: SparkSession, kind: FunctionKind
) -> None:
    missing = named_function("tests.support.frame_functions.no_such_function", kind)

    with pytest.raises(MirrorError, match="no_such_function"):
        outcomes(spark, [b"a", b"b"], missing)
