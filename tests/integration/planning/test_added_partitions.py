"""Partitions that are added to a topic which a flow copies already, and topics that the source does not have."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import add_partitions, consume, create_topic, produce, records, values, watermarks
from tests.support.mirrored_topic import MirroredTopic


def stored_counts(flow: Flow, topic: str) -> dict[int, int | None]:
    with FlowClusters.connect(flow.config) as clusters:
        stored = clusters.positions.read_all().positions
    return {place.partition: each.position.first_partitions for place, each in stored.items() if place.topic == topic}


def test_an_added_partition_is_copied_from_its_beginning_by_any_rule_of_the_first_start(
    mirrored: MirroredTopic,
) -> None:
    topics = {f"{mirrored.name}-{n}": rule for n, rule in enumerate(("latest", "offset 5", "2030-01-01T00:00:00Z"))}
    for topic in topics:
        create_topic(mirrored.source, topic)
        produce(mirrored.source, topic, records(20))
    rules = ", ".join(f"{topic}={rule}" for topic, rule in topics.items())
    flow = mirrored.flow({"A->B.mirror.first.start.topics": rules}, topics=f"{mirrored.name}-.*")
    assert flow.run().records == 15
    for topic in topics:
        add_partitions(mirrored.source, topic, 2)
        produce(mirrored.source, topic, records(40, partition=1))

    report = flow.run()

    assert (report.errors, report.records) == ((), 40 * len(topics))
    for topic, rule in topics.items():
        copied = consume(mirrored.target, f"A.{topic}", partitions=[1])
        assert values(copied) == values(records(40)), rule
        assert watermarks(mirrored.target, f"A.{topic}")[1] == (15 if rule == "offset 5" else 0), rule
        assert stored_counts(flow, topic) == {0: 1, 1: 1}, rule


def test_positions_of_version_0_1_0_tell_added_partitions_by_the_last_one(mirrored: MirroredTopic) -> None:
    mirrored.create([*records(5), *records(5, partition=1)], partitions=2)
    flow = mirrored.flow({"A->B.mirror.first.start": "latest"})
    assert flow.run().errors == ()
    with FlowClusters.connect(flow.config) as clusters:
        stored = clusters.positions.read_all()
        clusters.positions.write(
            replace(each.position, first_partitions=None, claim=stored.claims[place] + 1)
            for place, each in stored.positions.items()
            if place.topic == mirrored.name
        )
    add_partitions(mirrored.source, mirrored.name, 3)
    mirrored.produce(records(7, partition=2))

    report = flow.run()

    assert (report.errors, report.records) == ((), 7)
    assert stored_counts(flow, mirrored.name)[2] == 2


def test_the_first_start_still_holds_for_partitions_that_were_there(mirrored: MirroredTopic) -> None:
    mirrored.create([*records(5), *records(5, partition=1)], partitions=2)
    flow = mirrored.flow({"A->B.mirror.first.start": "latest"})
    assert flow.run().records == 0
    with FlowClusters.connect(flow.config) as clusters:
        # As `mirror position reset` does it.
        clusters.positions.forget([TopicPartition(mirrored.name, 1)])

    assert flow.run().records == 0


def test_a_named_topic_that_the_source_does_not_have_is_warned_of(mirrored: MirroredTopic) -> None:
    mirrored.create()
    flow = mirrored.flow(topics=f"{mirrored.name},misspelt-{mirrored.name}")

    report, plan = flow.run(), plan_flow(flow.config, RunOptions(), flow.ledger)

    assert report.exit_code == 0
    for warnings in (report.warnings, plan.warnings):
        (warning,) = warnings
        assert f"names misspelt-{mirrored.name}, which cluster A does not have" in warning
