"""What follows the copy of an idle partition on the target: records of others are reported, markers are not."""

from __future__ import annotations

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.planning.markers import WrittenRanges
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import create_topic, delete_topic, open_transaction, records, transaction
from tests.support.mirrored_topic import MirroredTopic


@pytest.fixture
def copied(mirrored: MirroredTopic) -> Flow:
    mirrored.create(records(10))
    flow = mirrored.flow()
    assert flow.run().records == 10
    return flow


def warnings(flow: Flow) -> list[str]:
    return [each for each in plan_flow(flow.config, RunOptions(), flow.ledger).warnings if "idle partition" in each]


def test_given_an_aborted_transaction_behind_the_copy_then_nothing_is_reported(
    mirrored: MirroredTopic, copied: Flow
) -> None:
    transaction(mirrored.target, mirrored.remote, [b"1", b"2", b"3"], commit=False)

    assert warnings(copied) == []


def test_given_a_record_between_markers_then_it_is_reported_until_records_come_that_it_stops(
    mirrored: MirroredTopic, copied: Flow
) -> None:
    transaction(mirrored.target, mirrored.remote, [b"1", b"2", b"3"], commit=False)
    mirrored.produce_remote(records(1))
    transaction(mirrored.target, mirrored.remote, [b"1", b"2", b"3"], commit=False)

    (warning,) = warnings(copied)
    assert f"1 idle partition: A.{mirrored.name}-0 (9 offsets). Another producer" in warning

    mirrored.produce(records(1, start=50))
    assert [each.reason for each in copied.run().errors] == ["target-diverged"]


def test_given_a_transaction_that_has_not_ended_then_it_is_reported(mirrored: MirroredTopic, copied: Flow) -> None:
    producer = open_transaction(mirrored.target, mirrored.remote, [b"1"])

    assert len(warnings(copied)) == 1

    producer.abort_transaction(30)
    assert warnings(copied) == []


def test_given_a_range_that_was_read_then_it_is_known_without_another_look_and_a_longer_one_is_not(
    mirrored: MirroredTopic,
) -> None:
    target = mirrored.target
    for name in (f"{mirrored.name}-markers", f"{mirrored.name}-records"):
        create_topic(target, name)
        transaction(target, name, [b"1", b"2"], commit=name.endswith("-records"))
    markers, written = (TopicPartition(f"{mirrored.name}-{what}", 0) for what in ("markers", "records"))
    ranges = WrittenRanges(Connection("B", (target.bootstrap_servers,)))

    assert ranges.with_records({markers: (0, 3), written: (0, 3)}) == {written: (0, 3)}

    delete_topic(target, markers.topic)
    assert ranges.with_records({markers: (0, 3), written: (0, 3)}) == {written: (0, 3)}
    # What cannot be read may have records.
    assert ranges.with_records({markers: (0, 4)}) == {markers: (0, 4)}
