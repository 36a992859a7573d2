"""A partition that is empty when a run sees it first: what becomes of it before the next run is not passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.cluster.topics.internal import StoredPosition
from mirror_lib.errors import RetentionGapError, SourceRecreatedError, TargetDeletedError
from mirror_lib.relay.gaps.resolutions import Decision
from mirror_lib.relay.planning.facts import FlowClusters
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import (
    add_partitions,
    admin,
    consume,
    create_topic,
    delete_records,
    delete_topic,
    produce,
    records,
)

#: Of the second partition, which is the one without records.
EMPTY = 1


@pytest.fixture
def flow(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> Flow:
    """A flow that has run once: ten records in the first partition, none in the second."""
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, records(10))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    assert flow.run().errors == ()
    return flow


def stored(flow: Flow, topic: str, partition: int = EMPTY) -> StoredPosition | None:
    with FlowClusters.connect(flow.config) as clusters:
        return clusters.positions.read_all().positions.get(TopicPartition(topic, partition))


def test_its_position_names_what_it_is_about_and_is_stored_once(flow: Flow, topic_name: str) -> None:
    first = stored(flow, topic_name)

    assert flow.run().records == 0

    copied = stored(flow, topic_name, 0)
    assert first is not None
    assert copied is not None
    position, other = first.position, copied.position
    assert (position.offset, position.target_offset, position.state) == (-1, 0, other.state)
    assert position.topic_id == other.topic_id is not None
    assert (position.target_topic, position.target_topic_id) == (other.target_topic, other.target_topic_id)
    assert (position.clusters, position.first_partitions) == (other.clusters, 2)
    assert stored(flow, topic_name) == first


def test_records_that_came_and_went_are_a_gap(kafka_pair: KafkaPair, flow: Flow, topic_name: str) -> None:
    written = produce(kafka_pair.source, topic_name, records(5, partition=EMPTY))
    delete_records(kafka_pair.source, topic_name, before=3, partition=EMPTY)

    report = flow.run()

    (error,) = report.errors
    assert isinstance(error, RetentionGapError)
    assert (error.where.partition, report.exit_code) == (EMPTY, 3)
    (gap,) = flow.ledger.gaps("A->B")
    assert (gap.partition, gap.first_offset, gap.next_offset) == (EMPTY, 0, 3)
    assert flow.run(losses=Decision.ACCEPT).records == 2
    copied = consume(kafka_pair.target, f"A.{topic_name}", partitions=[EMPTY])
    assert [each.value for each in copied] == [each.value for each in written[3:]]


def test_an_added_partition_is_compared_since_it_was_seen(kafka_pair: KafkaPair, flow: Flow, topic_name: str) -> None:
    add_partitions(kafka_pair.source, topic_name, 3)
    assert flow.run().errors == ()
    produce(kafka_pair.source, topic_name, records(5, partition=2))
    delete_records(kafka_pair.source, topic_name, before=5, partition=2)

    (error,) = flow.run().errors

    assert (type(error), error.where.partition) == (RetentionGapError, 2)


def test_another_topic_of_the_name_is_noticed(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    assert flow.run().errors == ()
    delete_topic(kafka_pair.source, topic_name)
    create_topic(kafka_pair.source, topic_name)

    (error,) = flow.run().errors

    assert isinstance(error, SourceRecreatedError)


def test_beside_it_a_deleted_target_topic_is_not_created_again(
    kafka_pair: KafkaPair, flow: Flow, topic_name: str
) -> None:
    target = f"A.{topic_name}"
    delete_topic(kafka_pair.target, target)

    errors = flow.run().errors

    assert TargetDeletedError in {type(error) for error in errors}
    assert target not in admin(kafka_pair.target).list_topics(timeout=10).topics


def test_it_waits_for_its_first_record_where_its_target_holds_records_of_others(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    create_topic(kafka_pair.target, f"A.{topic_name}")
    produce(kafka_pair.target, f"A.{topic_name}", records(2))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)

    report = flow.run()

    assert (report.errors, stored(flow, topic_name, 0)) == ((), None)
    produce(kafka_pair.source, topic_name, records(1))
    assert [error.reason for error in flow.run().errors] == ["target-not-empty"]
