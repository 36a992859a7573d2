"""Partitions that are added to a topic which a flow copies already, and topics that the source does not have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.relay.planning.facts import FlowClusters
from mirror_lib.relay.run import plan_flow
from mirror_lib.relay.run_options import RunOptions
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import add_partitions, consume, create_topic, produce, records


def stored_counts(flow: Flow, topic: str) -> dict[int, int | None]:
    with FlowClusters.connect(flow.config) as clusters:
        stored = clusters.positions.read_all().positions
    return {place.partition: each.position.first_partitions for place, each in stored.items() if place.topic == topic}


@pytest.mark.parametrize("start", ["latest", "offset 5", "2030-01-01T00:00:00Z"])
def test_an_added_partition_is_copied_from_its_beginning(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, start: str
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(20))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A->B.mirror.first.start": start})
    assert flow.run().errors == ()
    before = len(consume(kafka_pair.target, f"A.{topic_name}"))
    add_partitions(kafka_pair.source, topic_name, 2)
    written = produce(kafka_pair.source, topic_name, records(40, partition=1))

    report = flow.run()

    assert (report.errors, report.records) == ((), 40)
    copied = consume(kafka_pair.target, f"A.{topic_name}", partitions=[1])
    assert [each.value for each in copied] == [each.value for each in written]
    assert len(consume(kafka_pair.target, f"A.{topic_name}")) == before + 40
    assert stored_counts(flow, topic_name) == {0: 1, 1: 1}


def test_positions_of_version_0_1_0_tell_added_partitions_by_the_last_one(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*records(5), *records(5, partition=1)])
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A->B.mirror.first.start": "latest"})
    assert flow.run().errors == ()
    with FlowClusters.connect(flow.config) as clusters:
        stored = clusters.positions.read_all()
        clusters.positions.write(
            replace(each.position, first_partitions=None, claim=stored.claims[place] + 1)
            for place, each in stored.positions.items()
            if place.topic == topic_name
        )
    add_partitions(kafka_pair.source, topic_name, 3)
    produce(kafka_pair.source, topic_name, records(7, partition=2))

    report = flow.run()

    assert (report.errors, report.records) == ((), 7)
    assert stored_counts(flow, topic_name)[2] == 2


def test_the_first_start_still_holds_for_partitions_that_were_there(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*records(5), *records(5, partition=1)])
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A->B.mirror.first.start": "latest"})
    assert flow.run().records == 0
    with FlowClusters.connect(flow.config) as clusters:
        # As `mirror position reset` does it.
        clusters.positions.forget([TopicPartition(topic_name, 1)])

    assert flow.run().records == 0


def test_a_named_topic_that_the_source_does_not_have_is_warned_of(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{topic_name},misspelt-{topic_name}")

    report, plan = flow.run(), plan_flow(flow.config, RunOptions(), flow.ledger)

    assert report.exit_code == 0
    for warnings in (report.warnings, plan.warnings):
        (warning,) = warnings
        assert f"names misspelt-{topic_name}, which cluster A does not have" in warning
