"""A run makes the target equal to the source; a second one has nothing to do; a third copies only what is new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, records


def contents(found: list[Record]) -> list[Record]:
    """Records without offsets, which may differ where the source has holes."""
    return [replace(record, offset=None) for record in found]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_records_arrive_equal_with_every_codec(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, codec: str
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=3)
    for partition in range(3):
        produce(kafka_pair.source, topic_name, records(2_000, size=300, partition=partition), compression_type=codec)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A->B.tasks.max": "2"})

    report = flow.run()

    assert report.errors == ()
    assert report.records == 6_000
    assert consume(kafka_pair.target, f"A.{topic_name}") == consume(kafka_pair.source, topic_name)


def test_a_second_run_copies_nothing_and_a_third_only_what_is_new(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*records(500), *records(300, partition=1)])
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)

    assert flow.run().records == 800

    second = flow.run()
    assert (second.records, second.errors, second.idle) == (0, (), 2)

    produce(kafka_pair.source, topic_name, records(70, partition=1, start=300))
    assert flow.run().records == 70
    assert consume(kafka_pair.target, f"A.{topic_name}") == consume(kafka_pair.source, topic_name)


def test_a_first_start_at_the_end_copies_only_what_comes_later(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, records(50))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A.consumer.auto.offset.reset": "latest"})
    assert flow.run().records == 0

    later = produce(kafka_pair.source, topic_name, [*records(20, start=50), *records(5, partition=1)])
    report = flow.run()

    assert report.errors == ()
    assert report.records == 25
    assert contents(consume(kafka_pair.target, f"A.{topic_name}")) == contents(later)
