"""`mirror.offsets = same`: each record at the offset that it has at the source, or its partition stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.copy.transfer.holes import Holes
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.produce_errors import WriteFaults
from mirror_lib.copy.transfer.producer_state import PartitionWriter
from mirror_lib.copy.transfer.task_group import Background
from mirror_lib.errors import (
    FencedError,
    MirrorError,
    OffsetsDifferError,
    TargetDivergedError,
    TargetNotEmptyError,
    TopicMissingError,
)
from mirror_lib.features.audit.clusters import clusters_of
from mirror_lib.features.audit.findings import Kind
from mirror_lib.features.audit.model import AuditReport
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.run import audit
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.same_offsets.expected_holes import estimate
from mirror_lib.planning.model import HoleWriter, OpenPartition
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.compaction import create_compacted, forget, put
from tests.support.connections import connection_of
from tests.support.flows import Flow, copy_here
from tests.support.interruptions import asleep, claimed, interrupted, killed_after, up_to
from tests.support.kafka import (
    Record,
    consume,
    delete_records,
    delete_topic,
    records,
    transaction,
    watermarks,
)
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

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


def _logs(mirrored: MirroredTopic) -> tuple[tuple[KafkaCluster, str], ...]:
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


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
@pytest.mark.parametrize("killed_at", [None, 4, 6])
def test_records_that_a_policy_leaves_out_are_holes(
    mirrored: MirroredTopic, policy: str, killed_at: int | None
) -> None:
    """One of them in a batch with others, and one alone."""
    large = Record(value=Random(3).randbytes(9_000))
    mirrored.create([*records(3), large, *records(3, start=3)])
    mirrored.produce([large])
    mirrored.produce(records(2, start=6))
    mirrored.create_remote(configs={"max.message.bytes": "5000"})
    kept = f"{mirrored.name}-kept"
    flow = mirrored.flow({**SAME, "mirror.poison.policy": policy, "mirror.quarantine.topic": kept})
    if killed_at is not None:
        interrupted(flow, killed_after(up_to(killed_at)))

    assert flow.run().errors == ()

    left = [each for each in consume(mirrored.source, mirrored.name) if each.offset not in (3, 7)]
    assert mirrored.copied() == left
    assert watermarks(mirrored.target, mirrored.remote) == (0, 10)
    if policy == "quarantine":
        found = [each.key for each in consume(mirrored.target, kept)]
        assert found == [f"{mirrored.name}-0-{offset}".encode() for offset in (3, 7)]


def test_a_target_that_holds_records_or_ends_later_is_refused(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(records(5))
    mirrored.create_remote()
    mirrored.produce_remote(records(9))

    (error,) = flow.run().errors
    assert isinstance(error, TargetNotEmptyError)
    # Such a flow refuses to append.
    assert "mirror.target.existing" not in error.action

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


def test_a_hole_that_is_larger_than_allowed_stops_the_partition_before_it(mirrored: MirroredTopic) -> None:
    committed = {**SAME, "A.consumer.isolation.level": "read_committed"}
    mirrored.create(records(5))
    marked_transaction(mirrored, [b"1", b"2", b"3"], commit=False)
    mirrored.produce(records(4, start=50))

    (error,) = mirrored.flow({**committed, "mirror.offsets.pad.max.records": "3"}).run().errors

    assert isinstance(error, OffsetsDifferError)
    assert "4 offsets from 5 on have no record" in error.what
    assert watermarks(mirrored.target, mirrored.remote) == (0, 5)
    assert mirrored.flow({**committed, "mirror.offsets.pad.max.records": "4"}).run().errors == ()
    assert_same(mirrored, "read_committed")


def marked_transaction(
    mirrored: MirroredTopic, values: list[bytes], *, commit: bool = True, partition: int = 0
) -> None:
    """Write a transaction at the source; its marker comes shortly after the answer."""
    _start, end = watermarks(mirrored.source, mirrored.name, partition)
    transaction(mirrored.source, mirrored.name, values, commit=commit, partition=partition)
    wait_for(lambda: watermarks(mirrored.source, mirrored.name, partition)[1] == end + len(values) + 1)


def seen(mirrored: MirroredTopic) -> None:
    """Records and markers at the source: a hole after 12 and after 18 records, and one at the end."""
    mirrored.create(records(10))
    marked_transaction(mirrored, [b"1", b"2"])
    marked_transaction(mirrored, [b"3", b"4", b"5"], commit=False)
    mirrored.produce(records(10, start=50))
    marked_transaction(mirrored, [b"6"])


def test_a_plan_knows_about_how_many_offsets_have_no_record(mirrored: MirroredTopic, flow: Flow) -> None:
    seen(mirrored)
    planned = plan_flow(flow.config, RunOptions(), flow.ledger)

    holes = estimate(flow.config, planned.partitions)

    # Three, weighted by the places that are read.
    assert holes is not None
    assert 2 <= holes.total <= 6


@pytest.mark.parametrize("end", [1, 10, 12, 13, 16, 17, 27, 28, 29])
def test_a_run_whose_driver_died_is_taken_over_by_the_offsets(mirrored: MirroredTopic, flow: Flow, end: int) -> None:
    seen(mirrored)
    interrupted(flow, killed_after(up_to(end)))

    assert flow.run().errors == ()

    assert_same(mirrored)
    stored = flow.position(mirrored.name)
    assert (stored.offset + 1, stored.target_offset) == (29, 29)


@pytest.mark.parametrize("times", [1, 2])
def test_a_transaction_that_a_killed_writer_left_open_has_its_marker_in_a_hole(
    mirrored: MirroredTopic, flow: Flow, times: int
) -> None:
    """Killed between AddPartitionsToTxn and EndTxn of the first hole; then another run is killed as it has claimed."""
    seen(mirrored)
    job = asleep(flow)
    copy_here(up_to(12)(job))
    begin_transaction(mirrored, job.bins[0])
    for _ in range(1, times):
        asleep(flow)

    assert flow.run().errors == ()

    assert_same(mirrored)


@pytest.mark.parametrize("tasks", [1, 2])
def test_open_transactions_of_several_partitions_have_their_markers_in_their_holes(
    mirrored: MirroredTopic, flow: Flow, tasks: int
) -> None:
    """One transaction for both partitions, or one by each of two tasks; then they are taken over by one task."""
    mirrored.create([*records(5), *records(5, partition=1)], partitions=2)
    for number in range(2):
        marked_transaction(mirrored, [b"1"], partition=number)
        mirrored.produce(records(3, start=50, partition=number))
    job = asleep(flow, tasks_max=tasks)
    assert len(job.bins) == tasks
    copy_here(up_to(6)(job))
    for partitions in job.bins:
        begin_transaction(mirrored, partitions)

    assert flow.run(tasks_max=1).errors == ()

    assert_same(mirrored)
    assert open_transactions(mirrored) == []


def test_a_marker_where_the_source_has_a_record_stops_the_partition(mirrored: MirroredTopic, flow: Flow) -> None:
    """Killed like that, but the source has no hole there."""
    seen(mirrored)
    job = asleep(flow)
    copy_here(up_to(5)(job))
    begin_transaction(mirrored, job.bins[0])

    (error,) = flow.run().errors

    assert isinstance(error, TargetDivergedError)
    assert "offset 5 does not match" in error.what
    assert watermarks(mirrored.target, mirrored.remote) == (0, 6)


@pytest.mark.parametrize("foreign", ["record", "aborted"])
def test_what_another_producer_wrote_where_the_source_ends_stops_a_take_over(
    mirrored: MirroredTopic, flow: Flow, foreign: str
) -> None:
    """The source's next record gets that offset."""
    mirrored.create(records(5))
    interrupted(flow, killed_after(up_to(5)))
    if foreign == "record":
        mirrored.produce_remote(records(1))
    else:
        transaction(mirrored.target, mirrored.remote, [b"1"], commit=False)
        wait_for(lambda: watermarks(mirrored.target, mirrored.remote)[1] == 7)

    for _ in range(2):
        (error,) = flow.run().errors
        assert isinstance(error, TargetDivergedError)
        assert "offset 5 does not match" in error.what
        mirrored.produce(records(1, start=700))


@pytest.mark.parametrize("copied", [12, 5])
def test_a_transaction_that_the_coordinator_aborts_has_its_marker_in_a_hole_or_stops_the_partition(
    mirrored: MirroredTopic, flow: Flow, copied: int
) -> None:
    """Nobody takes over within the time-out of a killed writer."""
    seen(mirrored)
    job = asleep(flow)
    copy_here(up_to(copied)(job))
    begin_transaction(mirrored, job.bins[0], timeout_ms=1_000)
    wait_for(lambda: not open_transactions(mirrored), seconds=30)
    wait_for(lambda: watermarks(mirrored.target, mirrored.remote)[1] == copied + 1)

    errors = flow.run().errors

    if copied == 12:
        assert errors == ()
        assert_same(mirrored)
    else:
        assert [type(each) for each in errors] == [TargetDivergedError]
        assert watermarks(mirrored.target, mirrored.remote) == (0, 6)


def test_a_writer_whose_transaction_the_coordinator_has_aborted_stops_and_the_next_run_goes_on(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    """It was suspended between AddPartitionsToTxn and EndTxn for longer than its time-out."""
    seen(mirrored)
    job = asleep(flow)
    copy_here(up_to(12)(job))
    writer = begin_transaction(mirrored, job.bins[0], timeout_ms=1_000)
    wait_for(lambda: not open_transactions(mirrored), seconds=30)
    later = tuple(
        replace(each, hole_writer=writer, target_offset=13, plan=replace(each.plan, start=13)) for each in job.bins[0]
    )

    (result,) = copy_here(replace(job, bins=(later,)))

    assert result.error is not None
    assert watermarks(mirrored.target, mirrored.remote)[1] < 17
    assert flow.run().errors == ()
    assert_same(mirrored)


def begin_transaction(
    mirrored: MirroredTopic, partitions: Sequence[OpenPartition], *, timeout_ms: int | None = None
) -> HoleWriter:
    """Add a task's partitions to a transaction of its writer of markers, as before markers; return the writer.

    Args:
        timeout_ms: of the transaction; the writer has another epoch then.
    """
    writer = partitions[0].hole_writer
    assert writer is not None
    name, number = f"mirror:A->B:holes:{writer.number}", writer.number

    async def begin(identity: ProducerIdentity) -> HoleWriter:
        async with open_clients(connection_of(mirrored.target.bootstrap_servers)) as (client,):
            targets, deadline = [each.plan.target for each in partitions], time.monotonic() + 30
            if timeout_ms is not None:
                identity = await client.producers.init_producer_id(
                    name, deadline=deadline, transaction_timeout_ms=timeout_ms
                )
            await client.producers.add_to_transaction(name, identity, targets, deadline=deadline)
        return HoleWriter(number, identity.producer_id, identity.epoch)

    return asyncio.run(begin(ProducerIdentity(writer.producer_id, writer.epoch)))


def open_transactions(mirrored: MirroredTopic) -> list[str]:
    """The transactional ids with an open transaction: a marker would come when it times out."""

    async def look() -> list[str]:
        async with open_clients(connection_of(mirrored.target.bootstrap_servers)) as (client,):
            names = await client.producers.transactional_ids()
            assert names
            states = {
                name: await client.producers.transaction_state(name, deadline=time.monotonic() + 30) for name in names
            }
        return [name for name, state in states.items() if state is not None and state.open]

    return asyncio.run(look())


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


def test_a_run_that_wakes_up_while_another_has_taken_over_and_not_written_yet_writes_nothing(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    """The other one has compared both logs: what is written now would take the place of its records."""
    mirrored.create(records(5))
    job = asleep(flow)
    taken_over(mirrored)

    (result,) = copy_here(claimed(job, seconds_ago=60))

    assert isinstance(result.error, FencedError)
    assert watermarks(mirrored.target, mirrored.remote) == (0, 0)
    assert flow.run().errors == ()
    assert_same(mirrored)


def taken_over(mirrored: MirroredTopic) -> None:
    """Take over the writer of the target partition, as the first step of a run that follows another one."""

    async def take() -> None:
        async with open_clients(connection_of(mirrored.target.bootstrap_servers)) as (client,):
            name = f"mirror:A->B:{mirrored.remote}-0"
            await client.producers.init_producer_id(name, deadline=time.monotonic() + 30)

    asyncio.run(take())


def test_a_run_that_wakes_up_in_front_of_a_hole_writes_no_marker(mirrored: MirroredTopic) -> None:
    flow = mirrored.flow({**SAME, "A.consumer.isolation.level": "read_committed"})
    mirrored.create(records(5))
    assert flow.run().errors == ()
    transaction(mirrored.source, mirrored.name, [b"1", b"2"], commit=False)
    mirrored.produce(records(4, start=50))
    job = asleep(flow)
    assert flow.run().errors == ()
    end = watermarks(mirrored.target, mirrored.remote)

    (result,) = copy_here(claimed(job, seconds_ago=0))

    assert isinstance(result.error, FencedError)
    assert watermarks(mirrored.target, mirrored.remote) == end
    assert_same(mirrored, "read_committed")


class _Upstream:
    """Takes what is acknowledged."""

    def acknowledged(self, copy: PartitionCopy, size: int) -> None:
        """Nothing holds memory here."""

    def committed(self, copies: Sequence[PartitionCopy]) -> None:
        """No transaction has records."""


def test_a_hole_that_is_refused_does_not_stop_those_of_other_partitions(mirrored: MirroredTopic, flow: Flow) -> None:
    """All holes of a moment are one transaction, which brokers refuse as a whole."""
    mirrored.create([*records(1), *records(1, partition=1), *records(1, partition=2)], partitions=3)
    job = asleep(flow)
    opened = [*job.bins[0]]
    opened[1] = replace(opened[1], plan=replace(opened[1].plan, target=TopicPartition("absent", 0)))

    async def fill() -> list[tuple[int, MirrorError | None]]:
        crashed: list[BaseException] = []
        background = Background(crashed.append)
        async with open_clients(connection_of(mirrored.target.bootstrap_servers)) as (client,):
            await client.refresh_leaders({mirrored.remote})
            upstream, resumed = _Upstream(), list[PartitionWriter]()
            faults = WriteFaults(
                client=client,
                background=background,
                acknowledged=upstream.acknowledged,
                lost_leader=lambda: None,
                resume=resumed.append,
            )
            holes = Holes(
                job.flow,
                client,
                background,
                faults,
                most=3,
                retry_seconds=10,
                upstream=upstream,
                resume=resumed.append,
            )
            writers = [PartitionWriter(each, 10, same_offsets=True) for each in opened]
            for writer, each in zip(writers, opened, strict=True):
                writer.copies.append(PartitionCopy(job.flow, each, job.settings, read_committed=False, recovered=()))
                holes.fill(writer, 3)
            while any(writer.end < 3 and writer.failed is None for writer in writers):
                assert crashed == []
                await asyncio.sleep(0.01)
            await background.stop()
        return [(writer.end, writer.failed) for writer in writers]

    (first, none), (refused, error), (third, also_none) = asyncio.run(fill())

    assert (first, refused, third) == (3, 0, 3)
    assert isinstance(error, TopicMissingError)
    assert none is also_none is None
    assert [watermarks(mirrored.target, mirrored.remote, number)[1] for number in range(3)] == [3, 0, 3]


def test_many_partitions_with_many_holes_have_them_all(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(partitions=40)
    for number in range(40):
        for count in range(1, 4):
            transaction(mirrored.source, mirrored.name, [b"1"] * count, commit=count != 2, partition=number)

    assert flow.run().errors == ()

    assert_same(mirrored)


@pytest.mark.parametrize(("by", "moved"), [("same", {}), ("own", {Kind.MOVED: 14})])
def test_an_audit_of_the_flow_compares_offsets(
    mirrored: MirroredTopic, flow: Flow, by: str, moved: dict[Kind, int]
) -> None:
    """Another flow has copied the records behind the first marker to other offsets."""
    seen(mirrored)
    assert mirrored.flow({**SAME, "A->B.mirror.offsets": by}).run().errors == ()

    report = audit_of(flow)

    assert (report.equal, report.counts) == (26, moved)


def audit_of(flow: Flow) -> AuditReport:
    """An audit of a flow, as by its file."""
    source, target, rules = clusters_of(flow.config)
    return audit(
        source,
        target,
        AuditOptions(selected=rules.topology.replicates, rules=rules, wait_seconds=0, read_committed=False),
    )
