"""Verification of transformed topics with a real Spark: what the transforms make again, against the target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_lib.topology.names import TopicPartition
from mirror_lib.verify.findings import DifferenceKind, Verdict
from mirror_lib.verify.report import VerifyReport
from mirror_lib.verify.run import VerifyOptions, verify_flow
from spark_jobs.replicate import copy_with
from spark_jobs.verify import verify_with
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTRIES = ("DE", "FR", "IT")


def payments(count: int, *, partition: int = 0) -> list[Record]:
    """JSON values with a country and a card number."""
    return [
        Record(
            key=b"payment-%d" % number,
            value=json.dumps({"id": number, "country": _COUNTRIES[number % 3], "card": f"4000-{number:08}"}).encode(),
            headers=(("trace", b"%d" % number), ("absent", None)),
            timestamp_ms=1_704_067_200_000 + number,
            partition=partition,
        )
        for number in range(count)
    ]


def settings_of(topic: str, /, **parts: str) -> dict[str, str]:
    """One transform of a topic."""
    own = {f"A->B.mirror.transform.one.{key.replace('__', '.')}": value for key, value in parts.items()}
    return {"A->B.mirror.transforms": "one", "A->B.mirror.transform.one.topics": topic, **own}


def masking(topic: str) -> dict[str, str]:
    return settings_of(
        topic,
        decode__value="json",
        schema__value="id BIGINT, country STRING, card STRING",
        filter="value.country <> 'FR'",
        value="struct(value.id AS id, value.country AS country, '****' AS card)",
    )


def verified(flow: Flow, spark: SparkSession) -> VerifyReport:
    return verify_flow(
        flow.config, ledger=flow.ledger, make_runner=lambda _: verify_with(spark), options=VerifyOptions()
    )


def a_flow(folder: Path, pair: KafkaPair, topics: str, settings: Mapping[str, str]) -> Flow:
    folder.mkdir(exist_ok=True)
    return pair_flow(folder, pair, topics=topics, settings=settings)


def test_given_a_filter_and_a_mask_when_somebody_adds_a_record_on_the_target_then_it_alone_is_found(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    plain = f"{topic_name}-plain"
    create_topic(kafka_pair.source, topic_name, partitions=2)
    create_topic(kafka_pair.source, plain)
    produce(kafka_pair.source, topic_name, [*payments(3000), *payments(1000, partition=1)])
    produce(kafka_pair.source, plain, payments(100))
    flow = a_flow(tmp_path, kafka_pair, f"{topic_name}, {plain}", masking(topic_name))
    written = flow.run(runner=copy_with(spark)).records

    equal = verified(flow, spark)
    produce(kafka_pair.target, f"A.{topic_name}", [Record(value=b"{}", partition=1)])
    different = verified(flow, spark)

    assert equal.exit_code == 0, equal.to_dict()
    assert equal.records == written == 2000 + 667 + 100
    assert len(equal.verdicts) == 3
    assert different.exit_code == 3
    (difference,) = (each for verdict in different.verdicts for each in verdict.differences)
    assert (difference.kind, difference.source_offset, difference.target_offset) == (DifferenceKind.EXTRA, None, 667)
    assert different.count(Verdict.EQUAL) == 2


def test_given_another_transform_than_that_of_the_copy_when_verified_then_every_record_differs(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, payments(90))
    flow = a_flow(tmp_path, kafka_pair, topic_name, masking(topic_name))
    flow.run(runner=copy_with(spark))
    other = a_flow(tmp_path, kafka_pair, topic_name, {**masking(topic_name), **settings_of(topic_name, key="'one'")})

    report = verified(other, spark)

    assert report.exit_code == 3
    (verdict,) = report.verdicts
    assert verdict.difference_count == 60
    assert {each.what for each in verdict.differences} == {("key",)}


def test_given_a_record_that_was_left_out_when_verified_then_it_is_no_difference(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    numbers = [Record(value=b"no number" if number == 37 else b"%d" % number) for number in range(100)]
    produce(kafka_pair.source, topic_name, numbers)
    doubled = settings_of(topic_name, decode__value="string", value="cast(value AS BIGINT) * 2")
    flow = a_flow(tmp_path, kafka_pair, topic_name, {"mirror.poison.policy": "skip", **doubled})
    assert flow.run(runner=copy_with(spark)).left_out == 1

    report = verified(flow, spark)

    assert report.exit_code == 0, report.to_dict()
    (verdict,) = report.verdicts
    assert (verdict.records, verdict.left_out) == (99, 1)


def test_given_a_record_that_the_transform_cannot_take_any_more_when_verified_then_it_is_told_up_to_where(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, [Record(value=b"%d" % number) for number in range(100)])
    flow = a_flow(tmp_path, kafka_pair, topic_name, settings_of(topic_name, decode__value="string", value="value"))
    flow.run(runner=copy_with(spark))
    # The number 60 is too large by now.
    smaller = settings_of(topic_name, decode__value="string", value="cast(value AS BIGINT) + 0 * (1 DIV (60 - value))")
    other = a_flow(tmp_path, kafka_pair, topic_name, smaller)

    report = verified(other, spark)

    (verdict,) = report.verdicts
    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "transform"), report.to_dict()
    assert "offset 60" in (verdict.detail or "")
    assert verdict.records <= 60


def test_given_chance_in_a_transform_when_verified_then_nothing_can_be_said(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, payments(10))
    flow = a_flow(tmp_path, kafka_pair, topic_name, settings_of(topic_name, key="uuid()"))
    flow.run(runner=copy_with(spark))

    report = verified(flow, spark)

    (verdict,) = report.verdicts
    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "not-deterministic")
    assert "uuid()" in (verdict.detail or "")


def test_given_records_that_become_several_when_verified_then_all_of_them_are_compared(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, [Record(value=b",".join([b"%d" % n] * (n % 4))) for n in range(400)])
    file = tmp_path / "parts.sql"
    # A record without parts is dropped.
    file.write_text(
        "SELECT concat(part, '-', place) AS value FROM records "
        "LATERAL VIEW posexplode(split(value, ',')) AS place, part WHERE value <> ''"
    )
    settings = settings_of(topic_name, decode__value="string", sql__file=str(file))
    flow = a_flow(tmp_path, kafka_pair, topic_name, settings)
    written = flow.run(runner=copy_with(spark)).records

    equal = verified(flow, spark)
    produce(kafka_pair.target, f"A.{topic_name}", [Record(value=b"399-2")])
    different = verified(flow, spark)

    assert equal.exit_code == 0, equal.to_dict()
    assert equal.records == written == 100 + 200 + 300
    (difference,) = (each for verdict in different.verdicts for each in verdict.differences)
    assert (difference.kind, difference.target_offset) == (DifferenceKind.EXTRA, 600)


def test_given_records_that_are_routed_when_verified_then_what_stands_elsewhere_is_compared_too(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*payments(900), *payments(300, partition=1)])
    elsewhere = f"{topic_name}-eu"
    # All go to one partition, whichever they are from; what is Italian stays.
    routing = settings_of(
        topic_name,
        decode__value="json",
        schema__value="id BIGINT, country STRING, card STRING",
        value="struct(value.id AS id, '****' AS card)",
        topic=f"CASE WHEN value.country <> 'IT' THEN '{elsewhere}' END",
        partition="CASE WHEN value.country <> 'IT' THEN 0 END",
    )
    flow = a_flow(tmp_path, kafka_pair, topic_name, routing)
    written = flow.run(runner=copy_with(spark)).records
    copy = consume(kafka_pair.target, elsewhere)

    equal = verified(flow, spark)
    produce(kafka_pair.target, elsewhere, [copy[10]])
    duplicated = verified(flow, spark)
    delete_topic(kafka_pair.target, elsewhere)
    create_topic(kafka_pair.target, elsewhere, partitions=2)
    produce(kafka_pair.target, elsewhere, [*copy[:10], replace(copy[10], value=b"{}"), *copy[11:-1]])
    changed = verified(flow, spark)

    assert equal.exit_code == 0, equal.to_dict()
    assert equal.records == written == 1200
    (found,) = equal.routed
    assert (found.target, found.records, found.made, found.standing) == (TopicPartition(elsewhere, 0), 800, 800, 800)
    assert len(found.sources) == 2
    (added,) = duplicated.routed
    assert duplicated.exit_code == 3
    assert [(each.kind, each.target_offset) for each in added.differences] == [(DifferenceKind.EXTRA, 800)]
    (altered,) = changed.routed
    assert changed.exit_code == 3
    assert (altered.records, altered.difference_count) == (798, 3)
    extra, *missing = sorted(altered.differences, key=lambda each: each.kind.value)
    assert (extra.kind, extra.target_offset, extra.source) == (DifferenceKind.EXTRA, 10, None)
    assert {each.kind for each in missing} == {DifferenceKind.MISSING}
    assert all(each.source is not None and each.source_offset is not None for each in missing)
    assert changed.count(Verdict.EQUAL) == 2
