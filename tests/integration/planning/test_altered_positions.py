"""Positions altered as Connect alters them (KIP-875): a run continues there, as MirrorMaker 2 does, and says so."""

from __future__ import annotations

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import Position, PositionKeys, PositionState
from mirror_lib.cluster.topics.position_store import PositionStore, StoredPosition
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.ledger.rows import POSITION_SET
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import Record, produce
from tests.support.mirrored_topic import MirroredTopic

_KEYS = PositionKeys("A")


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    """A flow that has copied ten records."""
    mirrored.create()
    settings = {"B.offset.storage.topic": f"positions-{mirrored.name}"}
    flow = mirrored.flow(settings)
    write(mirrored, 0, 10)
    assert flow.run().records == 10
    return flow


def write(mirrored: MirroredTopic, first: int, following: int) -> None:
    mirrored.produce([Record(value=b"%d" % number) for number in range(first, following)])


def stored(mirrored: MirroredTopic, flow: Flow) -> StoredPosition:
    connection = Connection.from_settings(flow.config.clients.target_internal)
    with PositionStore(connection, flow.config.offset_storage_topic, "A") as store:
        return store.read_all().positions[TopicPartition(mirrored.name, 0)]


def alter(mirrored: MirroredTopic, flow: Flow, value: bytes | None) -> None:
    """Write what Connect writes for `PATCH /connectors/MirrorSourceConnector/offsets`."""
    partition = stored(mirrored, flow).record.partition
    record = Record(key=_KEYS.encode(TopicPartition(mirrored.name, 0)), value=value, partition=partition)
    produce(mirrored.target, flow.config.offset_storage_topic, [record])


def on_target(mirrored: MirroredTopic) -> list[int]:
    return [int(record.value or b"") for record in mirrored.copied()]


@pytest.mark.parametrize(
    ("offset", "copied", "told"),
    [
        (3, [*range(10), *range(4, 12)], "copied again"),
        (10, [*range(10), 11], "offsets 10 to 10 are skipped"),
        (9, [*range(12)], "continues at source offset 10"),
    ],
    ids=["back", "forward", "the same"],
)
def test_a_run_continues_where_connect_has_set_the_position(
    mirrored: MirroredTopic, flow: Flow, offset: int, copied: list[int], told: str
) -> None:
    write(mirrored, 10, 12)
    alter(mirrored, flow, b'{"offset":%d}' % offset)
    (planned,) = plan_flow(flow.config, RunOptions(), flow.ledger).partitions
    assert planned.start == offset + 1

    report = flow.run()

    assert (report.errors, on_target(mirrored)) == ((), copied)
    assert any(told in warning for warning in report.warnings)
    (noted,) = [gap for gap in flow.ledger.gaps("A->B") if gap.cause == POSITION_SET]
    assert told in (noted.detail or "")
    # The record has done its work.
    after = flow.run()
    assert (after.errors, after.records, after.warnings) == ((), 0, ())
    write(mirrored, 12, 13)
    assert flow.run().records == 1


def test_a_position_that_is_set_to_the_end_is_stored_though_there_is_nothing_to_copy(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    write(mirrored, 10, 12)
    alter(mirrored, flow, b'{"offset":11}')

    assert (flow.run().records, on_target(mirrored)) == (0, [*range(10)])

    position = flow.position(mirrored.name)
    assert (position.offset, position.target_offset, position.state) == (11, 10, PositionState.CLOSED)


def test_a_position_that_goes_back_where_somebody_has_written_since_waits_for_an_operator(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    alter(mirrored, flow, b'{"offset":3}')
    mirrored.produce_remote([Record(value=b"99")])

    report = flow.run()

    (error,) = report.errors
    assert (error.reason, report.exit_code) == ("unclean-start", 3)
    assert "Connect's form" in error.what
    assert f"mirror position set --flow 'A->B' --topic {mirrored.name} --partition 0 --to 4" in error.action
    assert on_target(mirrored) == [*range(10), 99]


@pytest.mark.parametrize("value", [None, b"null", b'{"offset":null}', b"{}"])
def test_a_position_that_is_reset_makes_the_next_run_a_first_start(
    mirrored: MirroredTopic, flow: Flow, value: bytes | None
) -> None:
    alter(mirrored, flow, value)

    (error,) = flow.run().errors

    assert error.reason == "target-not-empty"
    assert on_target(mirrored) == [*range(10)]


def test_positions_behind_others_of_connect_keep_the_last_one_of_this_program(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    for offset in (20, 15, 3):
        alter(mirrored, flow, b'{"offset":%d}' % offset)

    found = stored(mirrored, flow)

    assert found.position == Position(mirrored.name, 0, 3)
    assert found.altered is not None
    assert (found.altered.before.offset, found.altered.highest) == (9, 20)
