"""Flows that write in transactions: real brokers, a real Spark, and what readers of committed records see."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.replicate import copy_with
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENABLED = {"B.exactly.once.source.support": "enabled"}


def keys(found: list[Record]) -> Counter[tuple[int, bytes | None]]:
    return Counter((each.partition, each.key) for each in found)


def test_given_chance_and_a_record_that_fails_when_run_in_transactions_then_each_other_record_is_there_once(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    given = [*records(2000), *records(500, partition=1)]
    given[1200] = Record(key=b"key-1200", value=b"no number")
    produce(kafka_pair.source, topic_name, given)
    settings = {
        **_ENABLED,
        "mirror.poison.policy": "skip",
        "A->B.mirror.transforms": "number",
        "A->B.mirror.transform.number.decode.value": "string",
        "A->B.mirror.transform.number.value": "concat(cast(split(value, '-')[1] as int) + 1, '-', rand())",
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    report = flow.run(runner=copy_with(spark))
    again = flow.run(runner=copy_with(spark))

    # The record fails after others were sent, and the whole job is done again without it.
    assert report.errors == ()
    assert report.left_out == 1
    found = consume(kafka_pair.target, f"A.{topic_name}")
    assert keys(found) == keys([each for each in given if each.value != b"no number"])
    assert [int((each.value or b"").split(b"-")[0]) for each in found if each.partition == 1] == list(range(1, 501))
    assert again.results == ()


@pytest.mark.parametrize("transformed", [False, True], ids=["as they are", "through a transform"])
def test_given_topics_that_are_merged_when_run_in_transactions_then_each_record_is_there_once(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, *, transformed: bool
) -> None:
    topics = [f"{topic_name}-a", f"{topic_name}-b"]
    for topic in topics:
        create_topic(kafka_pair.source, topic, partitions=2)
        produce(kafka_pair.source, topic, [*records(300), *records(200, partition=1)])
    renamed = ", ".join(f"{topic}:{topic_name}" for topic in topics)
    settings = {**_ENABLED, "mirror.topics.rename": renamed, "mirror.topics.merge.enabled": "true"}
    if transformed:
        settings |= {"A->B.mirror.transforms": "all", "A->B.mirror.transform.all.filter": "value is not null"}
    flow = pair_flow(tmp_path, kafka_pair, topics=",".join(topics), settings=settings)

    report = flow.run(runner=copy_with(spark))
    again = flow.run(runner=copy_with(spark))

    assert (report.errors, report.records) == ((), 1000)
    assert again.results == ()
    wanted = [each for topic in topics for each in consume(kafka_pair.source, topic)]
    assert keys(consume(kafka_pair.target, topic_name)) == keys(wanted)
