"""Runs that did not end: what they left is found on the target, and their writers are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics import position_format
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import OffsetSyncWriter, PositionStore
from mirror_lib.config.topology import offset_syncs_topic
from mirror_lib.copy.transfer.task import copy_attempt, copy_bin
from mirror_lib.errors import FencedError, TargetDivergedError
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.flows import Flow, copy_here
from tests.support.interruptions import DriverKilledError, asleep, claimed, interrupted, killed_after, up_to
from tests.support.kafka import Record, consume, delete_records, produce, records, set_config, transaction, values
from tests.support.ledger.ledgers import ready_ledger
from tests.support.mirrored_topic import MirroredTopic


def store(flow: Flow) -> PositionStore:
    connection = Connection.from_settings(flow.config.clients.target_internal)
    return PositionStore(connection, flow.config.offset_storage_topic, "A")


@pytest.mark.parametrize("fencing", ["transactional", "none"])
def test_what_an_interrupted_run_copied_is_found_and_not_copied_again(mirrored: MirroredTopic, fencing: str) -> None:
    written = mirrored.create([*records(300), *records(200, partition=1)], partitions=2)
    settings = {"mirror.fencing": fencing, "mirror.run.lease.seconds": "3"}
    flow = mirrored.flow(settings)
    interrupted(flow, killed_after(up_to(120)))

    report = flow.run()

    assert report.errors == ()
    assert {result.source.partition: result.recovered for result in report.results} == {0: 120, 1: 120}
    assert report.records == 180 + 80
    copied = mirrored.copied()
    assert values(copied) == values(written)
    assert flow.position(mirrored.name).state is PositionState.CLOSED
    # The offset map covers what the interrupted run copied too.
    segments = flow.ledger.segments("A->B", mirrored.name, 1)
    assert sum(segment.records for segment in segments) == 200
    assert flow.run().records == 0


def test_a_take_over_with_nothing_more_to_copy_stores_the_last_records_of_both_sides(mirrored: MirroredTopic) -> None:
    """Seed 7036 of the model: a source restored to a state after the older record was taken for idle."""
    mirrored.create(records(10))
    flow = mirrored.flow()
    flow.run()
    mirrored.produce(records(5, start=10))
    interrupted(flow, killed_after())

    assert flow.run().errors == ()

    stored = flow.position(mirrored.name)
    known = [stored.last_record, stored.target_record]
    assert [each and each.offset for each in known] == [14, consume(mirrored.target, mirrored.remote)[-1].offset]


def test_a_zombie_that_wakes_up_after_its_successor_is_refused(mirrored: MirroredTopic) -> None:
    written = mirrored.create([*records(40), *records(40, partition=1)], partitions=2)
    flow = mirrored.flow()
    job = asleep(flow)
    successor = flow.run()

    woken = copy_bin(claimed(job, seconds_ago=0), 0)

    assert successor.errors == ()
    assert [type(result.error) for result in woken] == [FencedError, FencedError]
    assert not any(result.certain for result in woken)
    copied = mirrored.copied()
    assert values(copied) == values(written)
    mirrored.produce(records(5, start=40))
    assert flow.run().records == 5


def test_of_two_runs_at_the_same_time_one_ends_with_an_error_and_nothing_is_copied_twice(
    mirrored: MirroredTopic,
) -> None:
    written = mirrored.create(records(60))
    flow = mirrored.flow()
    # A ledger of its own, so that the run lock does not keep it away.
    other_ledger = ready_ledger(f"sqlite:///{mirrored.folder}/other.sqlite3")
    other = replace(flow, ledger=other_ledger)
    reports = []

    def while_the_other_runs(job: CopyJob) -> list[PartitionResult]:
        half = copy_here(up_to(30)(job))
        assert half[0].records == 30
        reports.append(other.run(sync=False))
        rest = [[replace(each, plan=replace(each.plan, start=30), target_offset=30) for each in job.bins[0]]]
        return copy_here(claimed(replace(job, bins=tuple(tuple(bin_) for bin_ in rest)), seconds_ago=0))

    older = flow.run(runner=while_the_other_runs)

    assert [type(error) for error in older.errors] == [FencedError]
    assert reports[0].errors == ()
    assert values(mirrored.copied()) == values(written)
    assert flow.run().errors == ()


def test_a_task_that_spark_starts_again_goes_on_behind_the_first_attempt(mirrored: MirroredTopic) -> None:
    written = mirrored.create(records(70))
    flow = mirrored.flow()

    def second_attempt(job: CopyJob) -> list[PartitionResult]:
        copy_here(up_to(30)(job))
        return copy_attempt(job, 0, 1)

    report = flow.run(runner=second_attempt)

    assert report.errors == ()
    assert (report.records, report.results[0].recovered) == (40, 30)
    assert values(mirrored.copied()) == values(written)
    assert flow.run().records == 0


def test_a_foreign_record_behind_the_position_stops_its_partition_and_no_other(mirrored: MirroredTopic) -> None:
    mirrored.create([*records(10), *records(10, partition=1)], partitions=2)
    flow = mirrored.flow()
    assert flow.run().errors == ()
    mirrored.produce_remote([Record(value=b"foreign", partition=1)])
    mirrored.produce([*records(5, start=10), *records(5, start=10, partition=1)])

    report = flow.run()

    (error,) = report.errors
    assert isinstance(error, TargetDivergedError)
    assert (error.where.topic, error.where.partition) == (mirrored.name, 1)
    assert "another producer wrote to it" in str(error)
    assert report.records == 5
    assert len(mirrored.copied()) == 15 + 11


def mirror_maker_position(flow: Flow, topic: str, offset: int) -> None:
    """What MirrorMaker 2 stores: an offset and nothing else."""
    with store(flow) as stored:
        stored.write([Position(topic, 0, offset)])


def mirror_maker_sync(flow: Flow, topic: str, upstream: int, downstream: int) -> None:
    connection = Connection.from_settings(flow.config.clients.offset_syncs_producer)
    with OffsetSyncWriter(connection, offset_syncs_topic(flow.config)) as writer:
        writer.write([OffsetSync(topic, 0, upstream, downstream)])


def test_mirror_makers_position_is_taken_over_by_its_newest_offset_sync(mirrored: MirroredTopic) -> None:
    remote = mirrored.remote
    mirrored.create()
    mirrored.create_remote()
    written = mirrored.produce(records(100))
    flow = mirrored.flow()
    flow.sync_topics()
    # It repeated two records at an earlier restart, and copied ten more than its stored position says.
    produce(mirrored.target, remote, [*records(20), *records(40, start=18)])
    mirror_maker_sync(flow, mirrored.name, 0, 0)
    mirror_maker_sync(flow, mirrored.name, 30, 32)
    mirror_maker_position(flow, mirrored.name, 47)

    report = flow.run()

    assert report.errors == ()
    assert report.records == 42
    copied = values(consume(mirrored.target, remote))
    assert copied[20:] == [record.value for record in written[18:]]
    assert flow.run().records == 0


def test_positions_are_stored_while_a_long_copy_runs(mirrored: MirroredTopic) -> None:
    mirrored.create()
    mirrored.produce(records(400, size=1000), batch_num_messages=1, linger_ms=0)
    # One batch at a time, so that it takes longer than some flush intervals.
    flow = mirrored.flow({"B.offset.flush.interval.ms": "20"}).with_settings(
        batch_passthrough_min_bytes=0, produce_max_in_flight=1
    )
    seen: list[Position] = []

    def run(job: CopyJob) -> list[PartitionResult]:
        copy_here(job)
        seen.append(flow.position(mirrored.name))
        raise DriverKilledError

    interrupted(flow, run)
    report = flow.run()

    assert seen[0].state is PositionState.OPEN
    assert 0 < seen[0].offset + 1 <= 400
    assert seen[0].target_offset == seen[0].offset + 1
    # What lies before the stored position need not be compared: the position says where it is.
    assert seen[0].runs == (OffsetRun(0, 0, seen[0].offset + 1),)
    assert report.results[0].recovered == 400
    assert sum(row.records for row in flow.ledger.segments("A->B", mirrored.name, 0)) == 400
    assert len(mirrored.copied()) == 400


def test_given_a_map_of_many_runs_when_the_copy_is_interrupted_then_its_position_is_stored_and_the_map_is_whole(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a source of many small transactions has them; each marker is a hole.
    monkeypatch.setattr(position_format, "MAP_PART_RUNS", 4)
    mirrored.create()
    for number in range(15):
        transaction(mirrored.source, mirrored.name, [b"%d-%d" % (number, n) for n in range(2)], commit=True)
    flow = mirrored.flow()
    interrupted(flow, killed_after())
    # The take-over finds 15 runs, stores them, and dies too.
    interrupted(flow, killed_after())
    stored = flow.position(mirrored.name)
    # What stands before the stored position needs no comparison: the target may lose it.
    delete_records(mirrored.target, mirrored.remote, before=30)

    report = flow.run()

    # The last record is the second of three offsets; behind it stands the fence's marker.
    assert (stored.offset, stored.target_offset, len(stored.runs)) == (15 * 3 - 2, 30 + 1, 15)
    assert report.errors == ()
    assert sum(row.records for row in flow.ledger.segments("A->B", mirrored.name, 0)) == 30
    # Parts of a map that was committed are deleted.
    mirrored.produce(records(1))
    assert flow.run().records == 1
    with store(flow) as now:
        assert now.read_all().unneeded_parts == frozenset()


def test_given_a_target_that_replaces_timestamps_when_resumed_then_nothing_repeats_and_the_report_says_it(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create()
    mirrored.create_remote(configs={"message.timestamp.type": "LogAppendTime"})
    written = mirrored.produce(records(60))
    settings = {"sync.topic.configs.enabled": "false"}
    flow = mirrored.flow(settings)
    interrupted(flow, killed_after(up_to(20)))

    report = flow.run()

    assert report.errors == ()
    assert values(mirrored.copied()) == values(written)
    (warning,) = report.warnings
    assert "message.timestamp.type=LogAppendTime" in warning
    assert mirrored.name in warning


@pytest.mark.parametrize("takes_them_now", [False, True])
def test_what_an_interrupted_copy_left_out_is_known_though_the_target_may_take_it_now(
    mirrored: MirroredTopic, takes_them_now: bool
) -> None:
    mirrored.create()
    mirrored.create_remote(configs={"max.message.bytes": "2000"})
    large = [Record(value=b"x" * 5000), Record(value=b"y" * 6000)]
    mirrored.produce([*records(10), large[0], *records(10, start=10), large[1]])
    flow = mirrored.flow({"mirror.poison.policy": "skip"})
    interrupted(flow, killed_after(up_to(15)))
    if takes_them_now:
        set_config(mirrored.target, mirrored.remote, "max.message.bytes", "100000")

    report = flow.run()

    assert report.errors == ()
    assert report.results[0].recovered == 14
    # The first one was left out by the run that died before it could say so.
    skipped = [10] if takes_them_now else [10, 21]
    assert sorted(gap.first_offset for gap in flow.ledger.gaps("A->B")) == skipped
    assert {gap.cause for gap in flow.ledger.gaps("A->B")} == {"record-too-large"}
    assert values(mirrored.copied()) == [*values(records(20)), *([large[1].value] if takes_them_now else [])]
