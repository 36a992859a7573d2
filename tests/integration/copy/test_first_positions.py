"""A partition that is empty when a run sees it first: what becomes of it before the next run is not passed over."""

from __future__ import annotations

import pytest

from mirror_lib.cluster.topics.position_store import StoredPosition
from mirror_lib.copy.gaps.resolutions import Decision
from mirror_lib.errors import RetentionGapError, TargetDeletedError
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import add_partitions, admin, delete_records, delete_topic, records, values
from tests.support.mirrored_topic import MirroredTopic

#: Of the second partition, which is the one without records.
EMPTY = 1


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    """A flow that has run once: ten records in the first partition, none in the second."""
    mirrored.create(records(10), partitions=2)
    flow = mirrored.flow()
    assert flow.run().errors == ()
    return flow


def stored(flow: Flow, topic: str, partition: int = EMPTY) -> StoredPosition | None:
    with FlowClusters.connect(flow.config) as clusters:
        return clusters.positions.read_all().positions.get(TopicPartition(topic, partition))


def test_its_position_names_what_it_is_about_and_is_stored_once(flow: Flow, topic_name: str) -> None:
    first = stored(flow, topic_name)

    assert flow.run().records == 0

    copied = stored(flow, topic_name, 0)
    position, other = first.position, copied.position
    assert (position.offset, position.target_offset, position.state) == (-1, 0, other.state)
    assert position.topic_id == other.topic_id is not None
    assert (position.target_topic, position.target_topic_id) == (other.target_topic, other.target_topic_id)
    assert (position.clusters, position.first_partitions) == (other.clusters, 2)
    assert stored(flow, topic_name) == first


def test_records_that_came_and_went_are_a_gap(mirrored: MirroredTopic, flow: Flow) -> None:
    written = mirrored.produce(records(5, partition=EMPTY))
    delete_records(mirrored.source, mirrored.name, before=3, partition=EMPTY)

    report = flow.run()

    (error,) = report.errors
    assert isinstance(error, RetentionGapError)
    assert (error.where.partition, report.exit_code) == (EMPTY, 3)
    (gap,) = flow.ledger.gaps("A->B")
    assert (gap.partition, gap.first_offset, gap.next_offset) == (EMPTY, 0, 3)
    assert flow.run(losses=Decision.ACCEPT).records == 2
    copied = mirrored.copied(partitions=[EMPTY])
    assert values(copied) == [each.value for each in written[3:]]


def test_an_added_partition_is_compared_since_it_was_seen(mirrored: MirroredTopic, flow: Flow) -> None:
    add_partitions(mirrored.source, mirrored.name, 3)
    assert flow.run().errors == ()
    mirrored.produce(records(5, partition=2))
    delete_records(mirrored.source, mirrored.name, before=5, partition=2)

    (error,) = flow.run().errors

    assert (type(error), error.where.partition) == (RetentionGapError, 2)


def test_beside_it_a_deleted_target_topic_is_not_created_again(mirrored: MirroredTopic, flow: Flow) -> None:
    target = mirrored.remote
    delete_topic(mirrored.target, target)

    errors = flow.run().errors

    assert TargetDeletedError in {type(error) for error in errors}
    assert target not in admin(mirrored.target).list_topics(timeout=10).topics


def test_it_waits_for_its_first_record_where_its_target_holds_records_of_others(mirrored: MirroredTopic) -> None:
    mirrored.create()
    mirrored.create_remote()
    mirrored.produce_remote(records(2))
    flow = mirrored.flow()

    report = flow.run()

    assert (report.errors, stored(flow, mirrored.name, 0)) == ((), None)
    mirrored.produce(records(1))
    assert [error.reason for error in flow.run().errors] == ["target-not-empty"]
