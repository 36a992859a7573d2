"""Records so old that a broker forgets who wrote them: a run that was overtaken is refused all the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.cluster.topics.position_format import PositionState
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.errors import FencedError, TargetDivergedError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.clusters import FAST_HOUSEKEEPING
from tests.support.flows import Flow, copy_here
from tests.support.interruptions import DriverKilledError, asleep, claimed, interrupted, killed_after, up_to
from tests.support.kafka import Record, records, set_config, watermarks
from tests.support.mirrored_topic import MirroredTopic

IN_TRANSACTIONS = {"mirror.old.records.in.transactions": "true", "mirror.run.lease.seconds": "3"}
#: Kafka looks every ten minutes.
FORGETFUL = {**FAST_HOUSEKEEPING, "producer.id.expiration.check.interval.ms": "200"}


@pytest.fixture(scope="module")
def forgetful(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaCluster]:
    """A broker that looks for producers to forget five times in a second."""
    cluster = KafkaCluster("forgetful", directory=brokers_folder / "forgetful", overrides=FORGETFUL)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def mirrored(mirrored: MirroredTopic, forgetful: KafkaCluster) -> MirroredTopic:
    return mirrored.between(target=forgetful)


def old_flow(mirrored: MirroredTopic, **settings: str) -> Flow:
    flow = mirrored.flow({**IN_TRANSACTIONS, **settings})
    flow.sync_topics()
    return flow


def committed(mirrored: MirroredTopic) -> list[bytes | None]:
    return [record.value for record in mirrored.copied(isolation="read_committed")]


def every(mirrored: MirroredTopic) -> list[bytes | None]:
    return [record.value for record in mirrored.copied(isolation="read_uncommitted")]


def forgets() -> None:
    """Let the broker look several times."""
    time.sleep(1)


def test_given_old_records_when_they_are_copied_then_a_transaction_takes_one_offset_of_each_partition(
    mirrored: MirroredTopic,
) -> None:
    written = mirrored.create([*records(300), *records(200, partition=1)], partitions=2)
    flow = old_flow(mirrored)

    report = flow.run()

    assert (report.records, report.errors) == (500, ())
    assert committed(mirrored) == [record.value for record in written]
    assert [watermarks(mirrored.target, mirrored.remote, n)[1] for n in (0, 1)] == [301, 201]
    assert flow.position(mirrored.name).target_offset == 301
    # The next start is clean: nothing is fenced and nothing is read.
    mirrored.produce(records(5, start=300))
    (result,) = flow.run().results
    assert (result.records, result.recovered, result.runs[0]) == (5, 0, (300, 301, 5))


def test_given_records_of_the_present_when_they_are_copied_then_there_is_no_transaction(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create([replace(record, timestamp_ms=None) for record in records(100)])
    flow = old_flow(mirrored)

    assert flow.run().records == 100

    assert watermarks(mirrored.target, mirrored.remote)[1] == 100


def test_given_old_records_behind_new_ones_when_they_are_copied_then_their_order_is_kept(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create()
    new = [replace(record, timestamp_ms=None) for record in records(50)]
    written = mirrored.produce([*new, *records(50, start=50), *new], batch_num_messages=10, linger_ms=50)
    settings = {"mirror.batch.passthrough.min.bytes": "1", "mirror.batch.max.bytes": "1024"}
    flow = old_flow(mirrored, **settings)

    assert flow.run().errors == ()

    assert committed(mirrored) == [record.value for record in written]


def test_given_a_run_that_slept_when_the_broker_has_forgotten_it_then_it_appends_nothing(
    mirrored: MirroredTopic,
) -> None:
    written = mirrored.create(records(60))
    flow = old_flow(mirrored)
    job = asleep(flow)
    successor = flow.run()
    forgets()

    woken = copy_bin(claimed(job, seconds_ago=0), 0)

    assert successor.errors == ()
    assert [type(result.error) for result in woken] == [FencedError]
    assert every(mirrored) == [record.value for record in written]


def test_given_a_task_that_begins_after_a_successor_has_copied_and_the_broker_has_forgotten_it_then_it_appends_nothing(
    mirrored: MirroredTopic,
) -> None:
    """Without transactions: one task of a run waits for another one while the run's machine sleeps for a minute."""
    written = mirrored.create(records(60))
    flow = old_flow(mirrored, **{"mirror.old.records.in.transactions": "false"})
    job = asleep(flow)
    successor = flow.run()
    forgets()

    woken = copy_bin(claimed(job, seconds_ago=60), 0)

    assert successor.errors == ()
    assert [type(result.error) for result in woken] == [TargetDivergedError]
    assert every(mirrored) == [record.value for record in written]


def test_given_a_run_that_died_in_its_transaction_when_the_next_one_comes_in_time_then_all_readers_see_each_record_once(
    mirrored: MirroredTopic,
) -> None:
    written = mirrored.create(records(60))
    flow = old_flow(mirrored)

    def die_before_the_commit(job: CopyJob) -> list[PartitionResult]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mirror_lib.copy.transfer.old_records.OldRecords._end", _dies)
            copy_here(up_to(40)(job))
        raise DriverKilledError

    interrupted(flow, die_before_the_commit)
    assert watermarks(mirrored.target, mirrored.remote)[1] == 40
    assert committed(mirrored) == []

    (result,) = flow.run().results

    assert (result.recovered, result.records) == (40, 20)
    values = [record.value for record in written]
    assert every(mirrored) == values
    assert committed(mirrored) == values
    assert flow.position(mirrored.name).state is PositionState.CLOSED


def test_given_a_driver_that_died_when_the_transactions_had_ended_then_its_position_is_where_the_copy_came_to(
    mirrored: MirroredTopic,
) -> None:
    # Else all of the copy would have to be compared, of which compaction may have left too little.
    mirrored.create(records(60))
    flow = old_flow(mirrored)

    interrupted(flow, killed_after(up_to(40)))

    position = flow.position(mirrored.name)
    assert (position.state, position.offset, position.target_offset) == (PositionState.OPEN, 39, 41)


@pytest.mark.parametrize("in_transactions", [{}, {"mirror.old.records.in.transactions": "false"}])
def test_given_a_refused_record_when_the_broker_has_forgotten_the_producer_then_nothing_behind_it_takes_its_place(
    mirrored: MirroredTopic, in_transactions: dict[str, str]
) -> None:
    mirrored.create()
    now = int(time.time() * 1000)
    days = 86_400_000
    bad = set(range(30, 300, 60))
    given = [
        Record(key=b"%d" % n, value=b"%d" % n * 100, timestamp_ms=now - (400 if n in bad else 3) * days)
        for n in range(300)
    ]
    mirrored.produce(given, batch_num_messages=10, linger_ms=50)
    settings = {
        "mirror.batch.passthrough.min.bytes": "1",
        "mirror.batch.max.bytes": "2048",
        "mirror.fetch.partition.max.bytes": "8192",
        "mirror.poison.policy": "skip",
    }
    flow = old_flow(mirrored, **settings, **in_transactions)
    set_config(mirrored.target, mirrored.remote, "message.timestamp.before.max.ms", str(100 * days))

    report = flow.run(bytes_per_second=20_000)

    assert report.errors == ()
    copied = [int(record.key or b"") for record in mirrored.copied()]
    assert copied == [n for n in range(300) if n not in bad]


async def _dies(*_: object) -> None:
    raise DriverKilledError
