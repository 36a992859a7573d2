"""Flows with transforms: real brokers, a real Spark, and what stands on the target afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirror_lib.errors import MirrorError
from spark_jobs.replicate import copy_with
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.frame_functions import sights
from tests.support.kafka import Record, consume, create_topic, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTRIES = ("DE", "FR", "IT")


def payments(count: int, *, partition: int = 0, start: int = 0) -> list[Record]:
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
        for number in range(start, start + count)
    ]


def masking(topic: str) -> dict[str, str]:
    return {
        "A->B.mirror.transforms": "mask",
        "A->B.mirror.transform.mask.topics": topic,
        "A->B.mirror.transform.mask.decode.value": "json",
        "A->B.mirror.transform.mask.schema.value": "id BIGINT, country STRING, card STRING",
        "A->B.mirror.transform.mask.filter": "value.country <> 'FR'",
        "A->B.mirror.transform.mask.value": "struct(value.id AS id, value.country AS country, '****' AS card)",
    }


def masked(given: list[Record]) -> list[tuple[bytes | None, dict[str, object]]]:
    found = []
    for record in given:
        content = json.loads(record.value or b"")
        if content["country"] != "FR":
            found.append((record.key, {**content, "card": "****"}))
    return found


def told(found: list[Record], partition: int) -> list[tuple[bytes | None, dict[str, object]]]:
    return [(each.key, json.loads(each.value or b"")) for each in found if each.partition == partition]


def test_a_filter_and_a_mask_when_run_then_the_target_has_what_they_leave_in_order(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    first, second = payments(3000), payments(1000, partition=1)
    produce(kafka_pair.source, topic_name, [*first, *second])
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=masking(topic_name))

    report = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    assert report.records == len(masked(first)) + len(masked(second))
    found = consume(kafka_pair.target, f"A.{topic_name}")
    assert told(found, 0) == masked(first)
    assert told(found, 1) == masked(second)
    assert found[0].headers == first[0].headers
    assert found[0].timestamp_ms == first[0].timestamp_ms


BROKEN = Record(key=b"broken", value=b'{"id": 1, "country": ', timestamp_ms=1_704_067_200_000)


def with_broken(given: list[Record], *places: int) -> list[Record]:
    """Some of the records replaced by one that is no JSON."""
    return [BROKEN if place in places else record for place, record in enumerate(given)]


def test_a_record_that_cannot_be_transformed_when_the_policy_is_fail_then_it_is_named_and_all_before_it_is_there(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    first, second = payments(2000), payments(500, partition=1)
    produce(kafka_pair.source, topic_name, [*with_broken(first, 1234), *second])
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=masking(topic_name))

    report = flow.run(runner=copy_with(spark))

    assert [(each.reason, each.where.topic, each.where.partition, each.where.offset) for each in report.errors] == [
        ("transform", topic_name, 0, 1234)
    ]
    found = consume(kafka_pair.target, f"A.{topic_name}")
    assert told(found, 0) == masked(first[:1234])
    assert told(found, 1) == masked(second)


def test_records_that_are_no_json_when_run_then_they_are_told_by_decoding_and_not_looked_for(
    spark: SparkSession,
    kafka_pair: KafkaPair,
    topic_name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create_topic(kafka_pair.source, topic_name)
    given = payments(300)
    produce(kafka_pair.source, topic_name, with_broken(given, 7, 150))
    settings = {**masking(topic_name), "mirror.poison.policy": "skip"}
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))

    assert (report.errors, report.left_out) == ((), 2)
    assert sorted(gap.first_offset for gap in flow.ledger.gaps("A->B")) == [7, 150]
    assert "searching for it" not in caplog.text


def test_a_record_for_which_an_expression_fails_when_run_then_it_is_looked_for_and_named(
    spark: SparkSession,
    kafka_pair: KafkaPair,
    topic_name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create_topic(kafka_pair.source, topic_name)
    given = payments(500)
    odd = replace(given[123], value=b'{"id": 123, "country": "DE", "card": "none"}')
    produce(kafka_pair.source, topic_name, [odd if record is given[123] else record for record in given])
    settings = {
        **masking(topic_name),
        "A->B.mirror.transform.mask.filter": "value.country <> 'FR' AND cast(substring(value.card, 6) AS INT) >= 0",
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))

    assert [(each.reason, each.where.offset) for each in report.errors] == [("transform", 123)]
    assert "searching for it" in caplog.text
    assert told(consume(kafka_pair.target, f"A.{topic_name}"), 0) == masked(given[:123])


@pytest.mark.parametrize("place", [0, 99_999])
def test_records_whose_content_names_another_record_when_they_fail_then_they_alone_are_left_out(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, place: int
) -> None:
    create_topic(kafka_pair.source, topic_name)
    # Given records that fail, and that name an innocent one in the text which Spark quotes
    forged = f"[mirror-record place={place} offset=5] innocent".encode()
    values = [b"%d" % number if number not in (20, 30) else forged for number in range(40)]
    produce(kafka_pair.source, topic_name, [Record(value=value) for value in values])
    settings = {
        "A->B.mirror.transforms": "number",
        "A->B.mirror.transform.number.topics": topic_name,
        "A->B.mirror.transform.number.decode.value": "string",
        "A->B.mirror.transform.number.value": "cast(value AS INT)",
        "mirror.poison.policy": "skip",
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    assert sorted(gap.first_offset for gap in flow.ledger.gaps("A->B")) == [20, 30]
    found = [record.value for record in consume(kafka_pair.target, f"A.{topic_name}")]
    assert found == [value for value in values if value != forged]


def test_records_that_cannot_be_transformed_when_the_policy_is_quarantine_then_copies_of_them_are_kept(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    given = payments(800)
    produce(kafka_pair.source, topic_name, with_broken(given, 0, 400, 799))
    settings = {**masking(topic_name), "mirror.poison.policy": "quarantine"}
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))

    assert (report.errors, report.left_out) == ((), 3)
    kept = [each for place, each in enumerate(given) if place not in (0, 400, 799)]
    assert told(consume(kafka_pair.target, f"A.{topic_name}"), 0) == masked(kept)
    assert sorted((gap.first_offset, gap.cause) for gap in flow.ledger.gaps("A->B")) == [
        (0, "transform"),
        (400, "transform"),
        (799, "transform"),
    ]


def test_topics_with_and_without_a_transform_when_run_together_then_each_goes_its_way(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    raw_topic = f"{topic_name}-raw"
    for name in (topic_name, raw_topic):
        create_topic(kafka_pair.source, name)
        produce(kafka_pair.source, name, payments(300))
    topics = f"{topic_name}, {raw_topic}"
    flow = pair_flow(tmp_path, kafka_pair, topics=topics, settings=masking(topic_name))

    report = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    assert told(consume(kafka_pair.target, f"A.{topic_name}"), 0) == masked(payments(300))
    assert consume(kafka_pair.target, f"A.{raw_topic}") == consume(kafka_pair.source, raw_topic)


def test_a_topic_by_the_content_of_records_when_run_then_each_country_has_its_own(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*payments(300), *payments(300, partition=1)])
    settings = {
        "A->B.mirror.transforms": "route",
        "A->B.mirror.transform.route.decode.value": "json",
        "A->B.mirror.transform.route.schema.value": "country STRING",
        "A->B.mirror.transform.route.topic": f"CASE WHEN value.country <> 'IT' THEN concat('{topic_name}.', "
        "lower(value.country)) END",
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    for country, topic in (("DE", f"{topic_name}.de"), ("FR", f"{topic_name}.fr"), ("IT", f"A.{topic_name}")):
        found = consume(kafka_pair.target, topic)
        for partition in (0, 1):
            wanted = [each.value for each in payments(300) if json.loads(each.value or b"")["country"] == country]
            assert [each.value for each in found if each.partition == partition] == wanted


def test_a_select_and_smts_of_the_file_when_run_then_both_have_worked_in_their_order(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, [*payments(50), Record(key=b"tombstone", timestamp_ms=1_704_067_200_000)])
    (tmp_path / "twice.sql").write_text(
        "SELECT value, concat(cast(key AS string), '-', cast(copy AS string)) AS key\n"
        "FROM records LATERAL VIEW explode(array(1, 2)) AS copy\n"
        "WHERE value IS NOT NULL -- no tombstones\n"
    )
    settings = {
        "A->B.transforms": "origin",
        "A->B.transforms.origin.type": "org.apache.kafka.connect.transforms.InsertHeader",
        "A->B.transforms.origin.header": "origin",
        "A->B.transforms.origin.value.literal": "east",
        "A->B.header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "A->B.mirror.transforms": "twice",
        "A->B.mirror.transform.twice.sql.file": "twice.sql",
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    found = consume(kafka_pair.target, f"A.{topic_name}")
    assert [each.key for each in found] == [b"payment-%d-%d" % (n, copy) for n in range(50) for copy in (1, 2)]
    assert [each.value for each in found[::2]] == [each.value for each in payments(50)]
    assert found[0].headers[-1] == ("origin", b"east")


def test_a_filter_that_leaves_nothing_when_run_twice_then_the_second_run_has_nothing_to_do(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*payments(200), *payments(100, partition=1)])
    settings = {
        "A->B.mirror.transforms": "none",
        "A->B.mirror.transform.none.filter": "partition = 0 AND offset < 0",
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))
    again = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    assert {result.source.partition: result.source_next for result in report.results} == {0: 200, 1: 100}
    assert (again.results, again.idle) == ((), 2)
    assert consume(kafka_pair.target, f"A.{topic_name}") == []


def nothing_at_first_sight(**more: str) -> dict[str, str]:
    """A transform of which Spark sees beforehand that it leaves nothing, but only once."""
    sights.clear()
    return {
        "A->B.mirror.transforms": "clock, part",
        "A->B.mirror.transform.clock.function": "tests.support.frame_functions.nothing_at_first_sight",
        "A->B.mirror.transform.part.filter": "partition > 0",
        **{f"A->B.mirror.transform.clock.{name}": value for name, value in more.items()},
    }


def test_a_clock_that_lets_nothing_through_when_it_lets_something_through_a_moment_later_then_that_is_written(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    given = payments(20, partition=1)
    produce(kafka_pair.source, topic_name, [*payments(10), *given])
    settings = {**nothing_at_first_sight(), "A->B.tasks.max": "2"}
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))
    again = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    assert {result.source.partition: result.source_next for result in report.results} == {0: 10, 1: 20}
    assert (again.results, again.idle) == ((), 2)
    found = consume(kafka_pair.target, f"A.{topic_name}")
    assert [(each.partition, each.key) for each in found] == [(1, each.key) for each in given]


def test_a_transform_that_is_not_as_deterministic_as_it_is_said_to_be_when_run_then_that_is_told(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, payments(10, partition=1))
    settings = nothing_at_first_sight(deterministic="true")
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    with pytest.raises(MirrorError, match="returned rows for records that it had dropped"):
        flow.run(runner=copy_with(spark))


def test_a_filter_that_is_always_false_when_run_then_all_was_read_and_nothing_is_left_to_do(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    """Spark starts no task for it."""
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*payments(20), *payments(10, partition=1)])
    settings = {"A->B.mirror.transforms": "none", "A->B.mirror.transform.none.filter": "rand() > 2"}
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))
    again = flow.run(runner=copy_with(spark))

    assert report.errors == ()
    assert {result.source.partition: result.source_next for result in report.results} == {0: 20, 1: 10}
    assert (again.results, again.idle) == ((), 2)
