"""Flows with transforms: real brokers, a real Spark, and what stands on the target afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirror_lib.copy.run_options import RunReport
from mirror_lib.errors import MirrorError
from spark_jobs.replicate import copy_with
from tests.e2e.one_spark.conftest import mask, payments, transform, transforms
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.frame_functions import sights
from tests.support.kafka import Record, consume, create_topic, produce
from tests.support.names import unique_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Topics, by what becomes of them, with the records of their two partitions.
TOPICS = {
    "masked": (payments(3000), payments(1000, partition=1)),
    "raw": (payments(300), []),
    "routed": (payments(300), payments(300, partition=1)),
    "nothing": (payments(200), payments(100, partition=1)),
    "never": (payments(20), payments(10, partition=1)),
    "clock": (payments(10), payments(20, partition=1)),
}
#: Spark sees beforehand that `nothing_at_first_sight` leaves nothing, but only once.
CLOCK = "tests.support.frame_functions.nothing_at_first_sight"


@dataclass(frozen=True, slots=True)
class Ran:
    """Two runs of one flow with all topics."""

    prefix: str
    first: RunReport
    second: RunReport

    def read_until(self, topic: str) -> dict[int, int]:
        """Partition -> the next offset of the source after the first run."""
        return {
            each.source.partition: each.source_next
            for each in self.first.results
            if each.source.topic == f"{self.prefix}-{topic}"
        }


@pytest.fixture(scope="module")
def ran(spark: SparkSession, kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    prefix = unique_name("transforms")
    for name, written in TOPICS.items():
        create_topic(kafka_pair.source, f"{prefix}-{name}", partitions=2)
        produce(kafka_pair.source, f"{prefix}-{name}", [record for each in written for record in each])
    settings = transforms(
        mask("mask", f"{prefix}-masked"),
        transform(
            "route",
            f"{prefix}-routed",
            decode__value="json",
            schema__value="country STRING",
            topic=f"CASE WHEN value.country <> 'IT' THEN concat('{prefix}.', lower(value.country)) END",
        ),
        transform("none", f"{prefix}-nothing", filter="partition = 0 AND offset < 0"),
        # Spark starts no task for it.
        transform("never", f"{prefix}-never", filter="rand() > 2"),
        transform("clock", f"{prefix}-clock", function=CLOCK),
        transform("part", f"{prefix}-clock", filter="partition > 0"),
    )
    flow = pair_flow(
        tmp_path_factory.mktemp("transforms"),
        kafka_pair,
        topics=f"{prefix}-.*",
        settings={**settings, "A->B.tasks.max": "2"},
    )
    sights.clear()
    return Ran(prefix, *(flow.run(runner=copy_with(spark)) for _ in range(2)))


def masked(given: list[Record]) -> list[tuple[bytes | None, dict[str, object]]]:
    found = []
    for record in given:
        content = json.loads(record.value or b"")
        if content["country"] != "FR":
            found.append((record.key, {**content, "card": "****"}))
    return found


def told(found: list[Record], partition: int = 0) -> list[tuple[bytes | None, dict[str, object]]]:
    return [(each.key, json.loads(each.value or b"")) for each in found if each.partition == partition]


def test_after_a_run_without_errors_the_next_one_has_nothing_to_do(ran: Ran) -> None:
    assert ran.first.errors == ()
    assert (ran.second.results, ran.second.idle) == ((), 2 * len(TOPICS))


def test_a_filter_and_a_mask_when_run_then_the_target_has_what_they_leave_in_order(
    ran: Ran, kafka_pair: KafkaPair
) -> None:
    first, second = TOPICS["masked"]

    found = consume(kafka_pair.target, f"A.{ran.prefix}-masked")

    assert told(found, 0) == masked(first)
    assert told(found, 1) == masked(second)
    assert found[0].headers == first[0].headers
    assert found[0].timestamp_ms == first[0].timestamp_ms
    assert ran.first.records == sum(
        (len(masked(first)) + len(masked(second)), len(payments(300)), 2 * len(payments(300)), len(payments(20)))
    )


def test_a_topic_without_a_transform_when_run_with_others_then_it_goes_its_own_way(
    ran: Ran, kafka_pair: KafkaPair
) -> None:
    found = consume(kafka_pair.target, f"A.{ran.prefix}-raw")

    assert found == consume(kafka_pair.source, f"{ran.prefix}-raw")
    assert len(found) == 300


def test_a_topic_by_the_content_of_records_when_run_then_each_country_has_its_own(
    ran: Ran, kafka_pair: KafkaPair
) -> None:
    own = f"A.{ran.prefix}-routed"
    for country, topic in (("DE", f"{ran.prefix}.de"), ("FR", f"{ran.prefix}.fr"), ("IT", own)):
        found = consume(kafka_pair.target, topic)
        for partition in (0, 1):
            wanted = [each.value for each in payments(300) if json.loads(each.value or b"")["country"] == country]
            assert [each.value for each in found if each.partition == partition] == wanted


@pytest.mark.parametrize("topic", ["nothing", "never"])
def test_a_filter_that_leaves_nothing_when_run_then_all_was_read(ran: Ran, kafka_pair: KafkaPair, topic: str) -> None:
    assert ran.read_until(topic) == {partition: len(each) for partition, each in enumerate(TOPICS[topic])}
    assert consume(kafka_pair.target, f"A.{ran.prefix}-{topic}") == []


def test_a_clock_that_lets_nothing_through_when_it_lets_something_through_a_moment_later_then_that_is_written(
    ran: Ran, kafka_pair: KafkaPair
) -> None:
    _, given = TOPICS["clock"]

    found = consume(kafka_pair.target, f"A.{ran.prefix}-clock")

    assert ran.read_until("clock") == {0: 10, 1: 20}
    assert [(each.partition, each.key) for each in found] == [(1, each.key) for each in given]


def test_a_transform_that_is_not_as_deterministic_as_it_is_said_to_be_when_run_then_that_is_told(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, payments(10, partition=1))
    sights.clear()
    settings = transforms(
        transform("clock", topic_name, function=CLOCK, deterministic="true"),
        transform("part", topic_name, filter="partition > 0"),
    )
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    with pytest.raises(MirrorError, match="returned rows for records that it had dropped"):
        flow.run(runner=copy_with(spark))


BROKEN = Record(key=b"broken", value=b'{"id": 1, "country": ', timestamp_ms=1_704_067_200_000)


def with_broken(given: list[Record], *places: int) -> list[Record]:
    """Some of the records replaced by one that is no JSON."""
    return [BROKEN if place in places else record for place, record in enumerate(given)]


def test_records_that_cannot_be_transformed_when_the_policy_is_fail_then_they_are_named_and_all_before_them_is_there(
    spark: SparkSession,
    kafka_pair: KafkaPair,
    topic_name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    no_json, odd = f"{topic_name}-1", f"{topic_name}-2"
    for name in (no_json, odd):
        create_topic(kafka_pair.source, name, partitions=2)
    # Given a record that is no JSON, which decoding names, and one that an expression cannot take, which names another
    first, second, others = payments(2000), payments(500, partition=1), payments(40)
    produce(kafka_pair.source, no_json, [*with_broken(first, 1234), *second])
    value = b'{"id": 23, "country": "DE", "card": "4000-[mirror-record place=99999 offset=5]"}'
    produce(kafka_pair.source, odd, [*others[:23], replace(others[23], value=value), *others[24:]])
    numbers = {
        "A->B.mirror.transform.number.filter": "value.country <> 'FR' AND cast(substring(value.card, 6) AS INT) >= 0"
    }
    settings = transforms(mask("mask", no_json), {**mask("number", odd), **numbers})
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{no_json}, {odd}", settings=settings)

    report = flow.run(runner=copy_with(spark))

    assert {(each.reason, each.where.topic, each.where.partition, each.where.offset) for each in report.errors} == {
        ("transform", no_json, 0, 1234),
        ("transform", odd, 0, 23),
    }
    found = consume(kafka_pair.target, f"A.{no_json}")
    assert told(found, 0) == masked(first[:1234])
    assert told(found, 1) == masked(second)
    assert told(consume(kafka_pair.target, f"A.{odd}")) == masked(others[:23])
    # Only the second one had to be looked for.
    assert caplog.text.count("searching for it") == 1
