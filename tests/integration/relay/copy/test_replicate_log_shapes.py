"""What brokers keep in their logs besides plain records: markers, aborted records, holes, broker times, merges."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from mirror_lib.errors import TopologyError
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import (
    Record,
    consume,
    create_topic,
    delete_topic,
    produce,
    records,
    transaction,
    watermarks,
)


def values(found: list[Record]) -> list[bytes | None]:
    return [record.value for record in found]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_arrive_as_their_isolation_level_shows_them(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, isolation: str
) -> None:
    create_topic(kafka_pair.source, topic_name)
    transaction(kafka_pair.source, topic_name, [b"a", b"b"], commit=True)
    transaction(kafka_pair.source, topic_name, [b"aborted"], commit=False)
    produce(kafka_pair.source, topic_name, [Record(value=b"plain")])
    transaction(kafka_pair.source, topic_name, [b"c"], commit=True)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A.consumer.isolation.level": isolation})

    report = flow.run()

    assert report.errors == ()
    shown = consume(kafka_pair.source, topic_name, isolation=isolation)
    assert (b"aborted" in values(shown)) is (isolation == "read_uncommitted")
    # On the target nothing is part of a transaction any more: every reader sees the same, without holes.
    copied = consume(kafka_pair.target, f"A.{topic_name}")
    assert values(copied) == values(shown)
    assert [record.offset for record in copied] == list(range(len(copied)))
    assert flow.run().records == 0


def test_an_open_transaction_is_copied_once_it_has_ended(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, [Record(value=b"before")])
    producer = Producer(
        {
            "bootstrap.servers": kafka_pair.source.bootstrap_servers,
            "transactional.id": f"tests-{topic_name}",
            "log_level": 3,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic_name, value=b"inside", partition=0)
    producer.flush(30)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A.consumer.isolation.level": "read_committed"})

    assert flow.run().records == 1
    producer.commit_transaction(30)
    assert flow.run().records == 1
    assert values(consume(kafka_pair.target, f"A.{topic_name}")) == [b"before", b"inside"]


def test_a_compacted_topic_arrives_without_its_holes(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
    create_topic(kafka_pair.source, topic_name, configs={**configs, "min.compaction.lag.ms": "0"})
    for number in range(6):
        produce(
            kafka_pair.source,
            topic_name,
            [Record(key=b"%d" % (n % 5), value=b"%d-%d" % (number, n)) for n in range(50)],
            compression_type="lz4",
        )
        time.sleep(0.2)
    deadline = time.monotonic() + 60
    while len(left := consume(kafka_pair.source, topic_name)) >= 300:
        assert time.monotonic() < deadline, "the broker did not compact the topic"
        time.sleep(0.5)
    # The target's cleaner would remove what the source's may still hold.
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"config.properties.exclude": "cleanup.policy"})

    report = flow.run()

    assert report.errors == ()
    copied = values(consume(kafka_pair.target, f"A.{topic_name}"))
    # The broker may go on compacting meanwhile: what is left last is the least that must have arrived.
    assert set(values(consume(kafka_pair.source, topic_name))) <= set(copied) <= set(values(left))
    assert flow.run().records == 0


def test_times_set_by_the_source_broker_are_kept(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name, configs={"message.timestamp.type": "LogAppendTime"})
    produce(kafka_pair.source, topic_name, records(500, size=200), compression_type="gzip")
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)

    assert flow.run().errors == ()
    source = consume(kafka_pair.source, topic_name)
    assert source[0].timestamp_ms != records(1)[0].timestamp_ms
    assert consume(kafka_pair.target, f"A.{topic_name}") == source


def test_two_topics_are_merged_into_one(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    first, second, merged = f"{topic_name}-1", f"{topic_name}-2", f"{topic_name}-merged"
    for name in (first, second):
        create_topic(kafka_pair.source, name, partitions=2)
    settings = {"mirror.topics.rename": f"{first}:{merged}, {second}:{merged}", "mirror.topics.merge.enabled": "true"}
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{first}, {second}", settings=settings)
    for start in (0, 1_000):
        one = produce(kafka_pair.source, first, records(600, start=start))
        two = produce(kafka_pair.source, second, records(400, start=start + 600))

        report = flow.run()

        assert report.errors == ()
        assert report.records == 1_000
        copied = consume(kafka_pair.target, merged)[start:]
        for written in (one, two):
            wanted = values(written)
            assert [value for value in values(copied) if value in set(wanted)] == wanted
    assert watermarks(kafka_pair.target, merged)[1] == 2_000


def test_two_topics_for_one_name_are_refused_without_a_merge(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    first, second, merged = f"{topic_name}-1", f"{topic_name}-2", f"{topic_name}-merged"
    for name in (first, second):
        create_topic(kafka_pair.source, name)
        produce(kafka_pair.source, name, records(3))
    create_topic(kafka_pair.target, merged)
    settings = {"mirror.topics.rename": f"{first}:{merged}, {second}:{merged}"}
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{first}, {second}", settings=settings)

    report = flow.run()

    assert {error.where.topic for error in report.errors} == {first, second}
    assert all(isinstance(error, TopologyError) and error.action for error in report.errors)
    assert watermarks(kafka_pair.target, merged)[1] == 0


def test_a_merge_can_be_run_topic_by_topic(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    first, second, merged = f"{topic_name}-1", f"{topic_name}-2", f"{topic_name}-merged"
    for name in (first, second):
        create_topic(kafka_pair.source, name)
        produce(kafka_pair.source, name, records(10))
    settings = {"mirror.topics.rename": f"{first}:{merged}, {second}:{merged}", "mirror.topics.merge.enabled": "true"}
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{first}, {second}", settings=settings)
    assert flow.run().records == 20

    for name in (first, second, first):
        produce(kafka_pair.source, name, records(5))
        report = flow.run(topics=(name,))
        assert report.errors == ()
        assert report.records == 5

    delete_topic(kafka_pair.source, second)
    produce(kafka_pair.source, first, records(5))
    assert flow.run().records == 5
    assert watermarks(kafka_pair.target, merged)[1] == 40
