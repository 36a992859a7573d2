"""Flows whose file has Connect's transforms and nothing else: real brokers, a real Spark, and what the target gets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.replicate import copy_with
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, consume, create_topic, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "org.apache.kafka.connect.transforms"
_NOON = 1_767_268_800_000


def smts(*transforms: dict[str, str]) -> dict[str, str]:
    """Settings of transforms t0, t1..."""
    lines = {
        "A->B.transforms": ", ".join(f"t{number}" for number in range(len(transforms))),
        "A->B.predicates": "tombstone, test",
        "A->B.predicates.tombstone.type": f"{_PACKAGE}.predicates.RecordIsTombstone",
        "A->B.predicates.test.type": f"{_PACKAGE}.predicates.HasHeaderKey",
        "A->B.predicates.test.name": "test",
    }
    for number, options in enumerate(transforms):
        lines |= {f"A->B.transforms.t{number}.{option}": text for option, text in options.items()}
        lines[f"A->B.transforms.t{number}.type"] = f"{_PACKAGE}.{options['type']}"
    return lines


NO_TOMBSTONES = {"type": "Filter", "predicate": "tombstone"}
NO_TRACE = {"type": "DropHeaders", "headers": "trace"}
MASK = {"type": "MaskField$Value", "fields": "card"}
PLAIN_JSON = {
    "A->B.value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "A->B.value.converter.schemas.enable": "false",
}


def record(number: int, partition: int = 0) -> Record:
    """Every fifth is a tombstone, every third a test, and every other one has a second header."""
    return Record(
        key=b"\xff%d" % number,
        value=None if number % 5 == 4 else json.dumps({"id": number, "card": f"4000-{number}"}).encode(),
        headers=(
            *((("test", None),) if number % 3 == 0 else ()),
            *((("trace", b"%d" % number), ("trace", None)) if number % 2 else ()),
        ),
        timestamp_ms=_NOON + number,
        partition=partition,
    )


def plain(found: list[Record], partition: int = 0) -> list[Record]:
    """Those of a partition without their offsets."""
    return [replace(each, offset=None) for each in found if each.partition == partition]


@pytest.fixture
def given(kafka_pair: KafkaPair, topic_name: str) -> dict[int, list[Record]]:
    """The records of two partitions."""
    create_topic(kafka_pair.source, topic_name, partitions=2)
    records = {0: [record(number) for number in range(2000)], 1: [record(number, 1) for number in range(700)]}
    produce(kafka_pair.source, topic_name, [*records[0], *records[1]])
    return records


def flow_of(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, settings: dict[str, str]) -> Flow:
    return pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)


def test_a_filter_and_dropped_headers_when_run_twice_then_the_second_run_has_nothing_to_do(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, given: dict[int, list[Record]]
) -> None:
    flow = flow_of(kafka_pair, topic_name, tmp_path, smts(NO_TOMBSTONES, NO_TRACE))

    report = flow.run(runner=copy_with(spark))
    again = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    found = consume(kafka_pair.target, f"A.{topic_name}")
    for partition, records in given.items():
        kept = [each for each in records if each.value is not None]
        assert plain(found, partition) == [
            replace(each, headers=tuple(header for header in each.headers if header[0] != "trace")) for each in kept
        ]
    assert {result.source.partition: result.source_next for result in report.results} == {0: 2000, 1: 700}
    assert again.results == ()


def test_a_filter_that_leaves_nothing_when_run_then_the_positions_are_at_the_end(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, given: dict[int, list[Record]]
) -> None:
    flow = flow_of(kafka_pair, topic_name, tmp_path, smts({"type": "Filter"}))

    report = flow.run(runner=copy_with(spark))

    assert (report.errors, report.records) == ((), 0)
    assert {result.source.partition: result.source_next for result in report.results} == {
        partition: len(records) for partition, records in given.items()
    }
    assert consume(kafka_pair.target, f"A.{topic_name}") == []


def test_a_router_when_run_then_the_records_that_its_predicate_takes_are_in_the_other_topic(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, given: dict[int, list[Record]]
) -> None:
    create_topic(kafka_pair.target, f"test.{topic_name}", partitions=2)
    route = {"type": "RegexRouter", "regex": r"A\.(.*)", "replacement": "test.$1", "predicate": "test"}
    flow = flow_of(kafka_pair, topic_name, tmp_path, smts(route))

    report = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    tests, others = (consume(kafka_pair.target, f"{prefix}.{topic_name}") for prefix in ("test", "A"))
    for partition, records in given.items():
        is_test = [any(name == "test" for name, _ in each.headers) for each in records]
        assert plain(tests, partition) == [each for each, routed in zip(records, is_test, strict=True) if routed]
        assert plain(others, partition) == [each for each, routed in zip(records, is_test, strict=True) if not routed]


def test_records_that_a_transform_refuses_when_the_policy_is_skip_then_all_others_are_there(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    records = [replace(record(number), value=b'{"card":"%d"}' % number) for number in range(900)]
    for broken in (0, 450, 899):
        records[broken] = replace(records[broken], value=b'{"card')
    produce(kafka_pair.source, topic_name, records)
    settings = {**smts(MASK), **PLAIN_JSON, "mirror.poison.policy": "skip"}
    flow = flow_of(kafka_pair, topic_name, tmp_path, settings)

    report = flow.run(runner=copy_with(spark))

    assert (report.errors, report.left_out) == ((), 3)
    assert [each.value for each in consume(kafka_pair.target, f"A.{topic_name}")] == [b'{"card":""}'] * 897
    assert sorted((gap.first_offset, gap.cause) for gap in flow.ledger.gaps("A->B")) == [
        (0, "transform"),
        (450, "transform"),
        (899, "transform"),
    ]


def test_a_record_that_a_transform_refuses_when_the_policy_is_fail_then_it_is_named_and_all_before_it_is_there(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, given: dict[int, list[Record]]
) -> None:
    # A tombstone is no map.
    flow = flow_of(kafka_pair, topic_name, tmp_path, {**smts(MASK), **PLAIN_JSON})

    report = flow.run(runner=copy_with(spark))

    assert {(each.reason, each.where.topic, each.where.partition, each.where.offset) for each in report.errors} == {
        ("transform", topic_name, 0, 4),
        ("transform", topic_name, 1, 4),
    }
    found = consume(kafka_pair.target, f"A.{topic_name}")
    for partition, records in given.items():
        assert [each.key for each in plain(found, partition)] == [each.key for each in records[:4]]


def test_transforms_of_both_kinds_when_run_then_ours_see_what_connects_have_made(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, given: dict[int, list[Record]]
) -> None:
    create_topic(kafka_pair.target, f"B.{topic_name}", partitions=2)
    route = {"type": "RegexRouter", "regex": r"A\.(.*)", "replacement": "B.$1"}
    ours = {"A->B.mirror.transforms": "keyed", "A->B.mirror.transform.keyed.key": "topic"}
    flow = flow_of(kafka_pair, topic_name, tmp_path, {**smts(NO_TOMBSTONES, route), **ours})

    report = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    found = consume(kafka_pair.target, f"B.{topic_name}")
    for partition, records in given.items():
        kept = [each for each in records if each.value is not None]
        assert plain(found, partition) == [replace(each, key=f"B.{topic_name}".encode()) for each in kept]
