"""Flows whose file has Connect's transforms: real brokers, a real Spark, and what the target gets."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from mirror_lib.copy.run_options import RunReport
from spark_jobs.replicate import copy_with
from tests.e2e.one_spark.conftest import transform, transforms
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import Record, consume, create_topic, produce
from tests.support.names import unique_name
from tests.support.smt_chains import TOMBSTONE, smt_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOON = 1_767_268_800_000


def smts(*given: dict[str, str], **converters: str) -> dict[str, str]:
    """Settings of Connect's transforms t0, t1..."""
    predicates = {
        **TOMBSTONE,
        "test": {"type": "HasHeaderKey", "name": "test"},
    }
    settings = smt_settings(*given, predicates=predicates, **converters)
    return {f"A->B.{name}": text for name, text in settings.items()}


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


GIVEN = {0: [record(number) for number in range(2000)], 1: [record(number, 1) for number in range(700)]}
#: Without tombstones, which none of the topics below keeps, and without the headers that all of them lose.
KEPT = {
    partition: [
        replace(each, headers=tuple(header for header in each.headers if header[0] != "trace"))
        for each in records
        if each.value is not None
    ]
    for partition, records in GIVEN.items()
}
ORIGIN = ("origin", b"east")


def plain(found: list[Record], partition: int = 0) -> list[Record]:
    """Those of a partition without their offsets."""
    return [replace(each, offset=None) for each in found if each.partition == partition]


@dataclass(frozen=True, slots=True)
class Ran:
    """Two runs of a flow without other transforms, and one of a flow with a key behind Connect's."""

    prefix: str
    first: RunReport
    second: RunReport
    ours: RunReport


@pytest.fixture(scope="module")
def ran(spark: SparkSession, kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    prefix = unique_name("smts")
    for name in ("plain", "routed", "keyed"):
        create_topic(kafka_pair.source, f"{prefix}-{name}", partitions=2)
        produce(kafka_pair.source, f"{prefix}-{name}", [*GIVEN[0], *GIVEN[1]])
    for name in (f"test.{prefix}-routed", f"B.{prefix}-keyed"):
        create_topic(kafka_pair.target, name, partitions=2)
    usual = ({"type": "Filter", "predicate": "tombstone"}, {"type": "DropHeaders", "headers": "trace"})
    theirs = smts(
        *usual,
        {"type": "RegexRouter", "regex": r"A\.(.*-routed)", "replacement": "test.$1", "predicate": "test"},
    )
    flow = pair_flow(
        tmp_path_factory.mktemp("smts"),
        kafka_pair,
        topics=", ".join(f"{prefix}-{name}" for name in ("plain", "routed")),
        settings=theirs,
    )
    first, second = (flow.run(runner=copy_with(spark)) for _ in range(2))
    folder = tmp_path_factory.mktemp("both")
    both = {
        **smts(
            *usual,
            {"type": "InsertHeader", "header": ORIGIN[0], "value.literal": ORIGIN[1].decode()},
            {"type": "RegexRouter", "regex": r"A\.(.*-keyed)", "replacement": "B.$1"},
            header="simple",
        ),
        **transforms(transform("keyed", f"{prefix}-keyed", key="topic")),
    }
    ours = pair_flow(folder, kafka_pair, topics=f"{prefix}-keyed", settings=both).run(runner=copy_with(spark))
    return Ran(prefix, first, second, ours)


def test_a_filter_and_dropped_headers_when_run_twice_then_the_second_run_has_nothing_to_do(
    ran: Ran, kafka_pair: KafkaPair
) -> None:
    assert (ran.first.errors, ran.second.results, ran.second.idle) == ((), (), 4)
    found = consume(kafka_pair.target, f"A.{ran.prefix}-plain")
    for partition, kept in KEPT.items():
        assert plain(found, partition) == kept


def test_a_router_when_run_then_the_records_that_its_predicate_takes_are_in_the_other_topic(
    ran: Ran, kafka_pair: KafkaPair
) -> None:
    tests, others = (consume(kafka_pair.target, f"{prefix}.{ran.prefix}-routed") for prefix in ("test", "A"))

    for partition, kept in KEPT.items():
        is_test = [any(name == "test" for name, _ in each.headers) for each in kept]
        assert plain(tests, partition) == [each for each, routed in zip(kept, is_test, strict=True) if routed]
        assert plain(others, partition) == [each for each, routed in zip(kept, is_test, strict=True) if not routed]


def test_transforms_of_both_kinds_when_run_then_ours_see_what_connects_have_made(
    ran: Ran, kafka_pair: KafkaPair
) -> None:
    topic = f"B.{ran.prefix}-keyed"

    found = consume(kafka_pair.target, topic)

    assert ran.ours.errors == ()
    for partition, kept in KEPT.items():
        assert plain(found, partition) == [
            replace(each, key=topic.encode(), headers=(*each.headers, ORIGIN)) for each in kept
        ]
