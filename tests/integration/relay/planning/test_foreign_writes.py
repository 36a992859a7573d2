"""What follows the copy of an idle partition on the target: records of others are reported, markers are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from mirror_lib.cluster import Connection
from mirror_lib.relay.planning.markers import WrittenRanges
from mirror_lib.relay.run import plan_flow
from mirror_lib.relay.run_options import RunOptions
from mirror_lib.topology import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import create_topic, delete_topic, produce, records, transaction


@pytest.fixture
def copied(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> Flow:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(10))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    assert flow.run().records == 10
    return flow


def warnings(flow: Flow) -> list[str]:
    return [each for each in plan_flow(flow.config, RunOptions(), flow.ledger).warnings if "idle partition" in each]


def test_given_an_aborted_transaction_behind_the_copy_then_nothing_is_reported(
    kafka_pair: KafkaPair, topic_name: str, copied: Flow
) -> None:
    transaction(kafka_pair.target, f"A.{topic_name}", [b"1", b"2", b"3"], commit=False)

    assert warnings(copied) == []


def test_given_a_record_between_markers_then_it_is_reported_until_records_come_that_it_stops(
    kafka_pair: KafkaPair, topic_name: str, copied: Flow
) -> None:
    transaction(kafka_pair.target, f"A.{topic_name}", [b"1", b"2", b"3"], commit=False)
    produce(kafka_pair.target, f"A.{topic_name}", records(1))
    transaction(kafka_pair.target, f"A.{topic_name}", [b"1", b"2", b"3"], commit=False)

    (warning,) = warnings(copied)
    assert f"1 idle partition: A.{topic_name}-0 (9 offsets). Another producer" in warning

    produce(kafka_pair.source, topic_name, records(1, start=50))
    assert [each.reason for each in copied.run().errors] == ["target-diverged"]


def test_given_a_transaction_that_has_not_ended_then_it_is_reported(
    kafka_pair: KafkaPair, topic_name: str, copied: Flow
) -> None:
    settings = {"bootstrap.servers": kafka_pair.target.bootstrap_servers, "transactional.id": topic_name}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(f"A.{topic_name}", b"1", partition=0)
    producer.flush(30)

    assert len(warnings(copied)) == 1

    producer.abort_transaction(30)
    assert warnings(copied) == []


def test_given_a_range_that_was_read_then_it_is_known_without_another_look_and_a_longer_one_is_not(
    kafka_pair: KafkaPair, topic_name: str
) -> None:
    target = kafka_pair.target
    for name in (f"{topic_name}-markers", f"{topic_name}-records"):
        create_topic(target, name)
        transaction(target, name, [b"1", b"2"], commit=name.endswith("-records"))
    markers, written = (TopicPartition(f"{topic_name}-{what}", 0) for what in ("markers", "records"))
    ranges = WrittenRanges(Connection("B", (target.bootstrap_servers,)))

    assert ranges.with_records({markers: (0, 3), written: (0, 3)}) == {written: (0, 3)}

    delete_topic(target, markers.topic)
    assert ranges.with_records({markers: (0, 3), written: (0, 3)}) == {written: (0, 3)}
    # What cannot be read may have records.
    assert ranges.with_records({markers: (0, 4)}) == {markers: (0, 4)}
