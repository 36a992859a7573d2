"""Flows that write in transactions: real brokers, a real Spark, and what readers of committed records see."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.replicate import copy_with
from tests.e2e.one_spark.conftest import payments, transform, transforms
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def keys(found: list[Record]) -> Counter[tuple[int, bytes | None]]:
    return Counter((each.partition, each.key) for each in found)


def test_given_chance_failures_and_merged_topics_when_run_in_transactions_then_each_other_record_is_there_once(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    numbers, merged = f"{topic_name}-numbers", {"plain": ("a", "b"), "filtered": ("c", "d")}
    create_topic(kafka_pair.source, numbers, partitions=2)
    # The record fails after others were sent, and the whole job is done again without it.
    given = [*payments(2000), *payments(500, partition=1)]
    given[1200] = replace(given[1200], value=b"no document")
    produce(kafka_pair.source, numbers, given)
    sources = {name: [f"{topic_name}-{each}" for each in letters] for name, letters in merged.items()}
    for topic in (topic for topics in sources.values() for topic in topics):
        create_topic(kafka_pair.source, topic, partitions=2)
        produce(kafka_pair.source, topic, [*records(300), *records(200, partition=1)])
    settings = transforms(
        transform(
            "number",
            numbers,
            decode__value="json",
            schema__value="id BIGINT",
            value="struct(value.id + 1 AS id, rand() AS chance)",
        ),
        transform("all", ", ".join(sources["filtered"]), filter="value is not null"),
    )
    renamed = ", ".join(f"{topic}:{topic_name}-{name}" for name, topics in sources.items() for topic in topics)
    settings |= {
        "B.exactly.once.source.support": "enabled",
        "mirror.poison.policy": "skip",
        "mirror.topics.rename": renamed,
        "mirror.topics.merge.enabled": "true",
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{topic_name}-.*", settings=settings)

    report = flow.run(runner=copy_with(spark))
    again = flow.run(runner=copy_with(spark))

    assert (report.errors, report.skipped, report.records) == ((), 1, 2499 + 4 * 500)
    assert again.results == ()
    found = consume(kafka_pair.target, f"A.{numbers}")
    assert keys(found) == keys([each for each in given if each.value != b"no document"])
    assert [json.loads(each.value or b"")["id"] for each in found if each.partition == 1] == list(range(1, 501))
    for name, topics in sources.items():
        wanted = [each for topic in topics for each in consume(kafka_pair.source, topic)]
        assert keys(consume(kafka_pair.target, f"{topic_name}-{name}")) == keys(wanted), name
