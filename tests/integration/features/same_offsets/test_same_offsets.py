"""`mirror.offsets = same`: each record at the offset that it has at the source, or its partition stops."""

from __future__ import annotations

import asyncio
import time

import pytest

from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.errors import OffsetsDifferError, TargetDivergedError, TargetNotEmptyError
from mirror_lib.planning.model import OpenPartition
from tests.support.brokers.compaction import create_compacted, forget, put
from tests.support.connections import connection_of
from tests.support.flows import Flow, copy_here
from tests.support.interruptions import asleep, claimed, interrupted, killed_after, up_to
from tests.support.kafka import consume, delete_records, delete_topic, records, transaction, watermarks
from tests.support.mirrored_topic import MirroredTopic

SAME = {"A->B.mirror.offsets": "same", "mirror.run.lease.seconds": "3"}


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    return mirrored.flow(SAME)


def assert_same(mirrored: MirroredTopic, isolation: str = "read_uncommitted") -> None:
    """Each record of the source is on the target at its offset, and both logs have the same end."""
    expected = consume(mirrored.source, mirrored.name, isolation=isolation)
    # Records are equal with their offsets.
    assert mirrored.copied() == expected
    for partition in {each.partition for each in expected}:
        ends = [watermarks(cluster, name, partition)[1] for cluster, name in _logs(mirrored)]
        assert ends[0] == ends[1]


def _logs(mirrored: MirroredTopic) -> tuple[tuple[object, str], ...]:
    return (mirrored.source, mirrored.name), (mirrored.target, mirrored.remote)


def test_markers_of_transactions_become_markers(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(records(50))
    for number in range(5):
        transaction(mirrored.source, mirrored.name, [b"a%d" % number, b"b"], commit=number != 2)
    mirrored.produce(records(20, start=500))

    report = flow.run()

    assert report.errors == ()
    assert_same(mirrored)


def test_a_marker_at_the_end_is_written_at_the_end_of_the_run(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(records(5))
    transaction(mirrored.source, mirrored.name, [b"1", b"2", b"3"], commit=True)
    assert flow.run().errors == ()
    assert watermarks(mirrored.target, mirrored.remote)[1] == 9

    transaction(mirrored.source, mirrored.name, [b"4", b"5"], commit=False)
    assert flow.run().errors == ()
    mirrored.produce(records(2, start=300))
    assert flow.run().errors == ()

    assert_same(mirrored)


def test_a_source_that_begins_later_has_its_offsets_from_the_start(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create([*records(300), *records(20, partition=1)], partitions=3)
    delete_records(mirrored.source, mirrored.name, before=250)

    flow.sync_topics()

    assert [watermarks(mirrored.target, mirrored.remote, number) for number in range(3)] == [(250, 250), (0, 0), (0, 0)]
    assert mirrored.copied() == []
    assert flow.run().errors == ()
    assert_same(mirrored)


def test_holes_that_compaction_has_left_are_filled(mirrored: MirroredTopic, flow: Flow) -> None:
    create_compacted(mirrored.source, mirrored.name)
    # One that does not compact itself while it is compared.
    mirrored.create_remote()
    for number in range(10):
        put(mirrored.source, mirrored.name, {f"key-{each}": str(number) for each in range(5)})
    put(mirrored.source, mirrored.name, {"gone": None})
    forget(mirrored.source, mirrored.name, ["gone"])

    assert flow.run().errors == ()

    offsets = [each.offset or 0 for each in mirrored.copied()]
    assert max(offsets) - min(offsets) >= len(offsets)
    assert_same(mirrored)


def test_aborted_records_that_are_not_copied_are_holes(mirrored: MirroredTopic) -> None:
    flow = mirrored.flow({**SAME, "A.consumer.isolation.level": "read_committed"})
    mirrored.create(records(5))
    transaction(mirrored.source, mirrored.name, [b"1", b"2"], commit=False)
    transaction(mirrored.source, mirrored.name, [b"3"], commit=True)
    mirrored.produce(records(5, start=50))

    assert flow.run().errors == ()

    assert_same(mirrored, "read_committed")


def test_a_target_that_holds_records_or_ends_later_is_refused(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(records(5))
    mirrored.create_remote()
    mirrored.produce_remote(records(9))

    (error,) = flow.run().errors
    assert isinstance(error, TargetNotEmptyError)

    delete_records(mirrored.target, mirrored.remote, before=9)
    (error,) = flow.run().errors
    assert isinstance(error, OffsetsDifferError)
    assert "its next offset is 9" in error.what

    delete_topic(mirrored.target, mirrored.remote)
    assert flow.run().errors == ()
    assert_same(mirrored)


def test_a_flow_does_not_change_the_offsets_of_a_copy(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(records(5))
    assert flow.run().errors == ()
    mirrored.produce(records(5, start=5))

    (error,) = mirrored.flow().run().errors

    assert isinstance(error, OffsetsDifferError)
    assert "were copied with mirror.offsets=same" in error.what
    assert flow.run().errors == ()
    assert_same(mirrored)


def test_more_holes_than_allowed_are_refused(mirrored: MirroredTopic) -> None:
    flow = mirrored.flow({**SAME, "mirror.offsets.pad.max.records": "100"})
    mirrored.create(records(300))
    delete_records(mirrored.source, mirrored.name, before=250)

    (error,) = flow.run().errors

    assert isinstance(error, OffsetsDifferError)
    assert "250 offsets before 250" in error.what

    assert mirrored.flow(SAME).run().errors == ()
    assert_same(mirrored)


def seen(mirrored: MirroredTopic) -> None:
    """Records and markers at the source: a hole after 12 and after 18 records, and one at the end."""
    mirrored.create(records(10))
    transaction(mirrored.source, mirrored.name, [b"1", b"2"], commit=True)
    transaction(mirrored.source, mirrored.name, [b"3", b"4", b"5"], commit=False)
    mirrored.produce(records(10, start=50))
    transaction(mirrored.source, mirrored.name, [b"6"], commit=True)


@pytest.mark.parametrize("end", [1, 10, 12, 13, 16, 17, 27, 28, 29])
def test_a_run_whose_driver_died_is_taken_over_by_the_offsets(mirrored: MirroredTopic, flow: Flow, end: int) -> None:
    seen(mirrored)
    interrupted(flow, killed_after(up_to(end)))

    assert flow.run().errors == ()

    assert_same(mirrored)
    stored = flow.position(mirrored.name)
    assert (stored.offset + 1, stored.target_offset) == (29, 29)


def test_a_transaction_that_a_killed_writer_left_open_has_its_marker_in_a_hole(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    """Killed between AddPartitionsToTxn and EndTxn of the first hole."""
    seen(mirrored)
    job = asleep(flow)
    (opened,) = job.bins[0]
    copy_here(up_to(12)(job))
    begin_transaction(mirrored, opened)

    assert flow.run().errors == ()

    assert_same(mirrored)


def test_a_marker_where_the_source_has_a_record_stops_the_partition(mirrored: MirroredTopic, flow: Flow) -> None:
    """Killed like that, but the source has no hole there."""
    seen(mirrored)
    job = asleep(flow)
    (opened,) = job.bins[0]
    copy_here(up_to(5)(job))
    begin_transaction(mirrored, opened)

    (error,) = flow.run().errors

    assert isinstance(error, TargetDivergedError)
    assert "offset 5 does not match" in error.what
    assert watermarks(mirrored.target, mirrored.remote) == (0, 6)


def begin_transaction(mirrored: MirroredTopic, opened: OpenPartition) -> None:
    """Add the partition to a transaction of its own writer, as before a marker."""

    async def begin() -> None:
        async with open_clients(connection_of(mirrored.target.bootstrap_servers)) as (client,):
            assert opened.transactional_id is not None
            identity = ProducerIdentity(opened.producer_id, opened.epoch)
            await client.producers.add_to_transaction(
                opened.transactional_id, identity, [opened.plan.target], deadline=time.monotonic() + 30
            )

    asyncio.run(begin())


def test_a_run_that_wakes_up_after_another_has_copied_writes_nothing(mirrored: MirroredTopic, flow: Flow) -> None:
    seen(mirrored)
    job = asleep(flow)
    assert flow.run().errors == ()
    end = watermarks(mirrored.target, mirrored.remote)

    for seconds_ago in (0, 60):
        (result,) = copy_here(claimed(job, seconds_ago=seconds_ago))
        assert result.error is not None
        assert watermarks(mirrored.target, mirrored.remote) == end

    mirrored.produce(records(3, start=900))
    assert flow.run().errors == ()
    assert_same(mirrored)
