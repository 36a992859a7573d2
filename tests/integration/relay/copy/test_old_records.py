"""Records so old that a broker forgets who wrote them: a run that was overtaken is refused all the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.cluster.topics.positions import PositionState
from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.errors import FencedError, TargetDivergedError
from mirror_lib.relay.copy.task import copy_bin
from mirror_lib.relay.model import CopyJob, PartitionResult
from tests.support.clusters import FAST_HOUSEKEEPING, KafkaPair
from tests.support.flows import Flow, copy_here, pair_flow
from tests.support.interruptions import DriverKilledError, asleep, claimed, interrupted, killed_after, up_to
from tests.support.kafka import Record, consume, create_topic, produce, records, set_config, watermarks

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
def pair(kafka_pair: KafkaPair, forgetful: KafkaCluster) -> KafkaPair:
    return replace(kafka_pair, target=forgetful)


def old_flow(folder: Path, pair: KafkaPair, topic: str, **settings: str) -> Flow:
    flow = pair_flow(folder, pair, topics=topic, settings={**IN_TRANSACTIONS, **settings})
    flow.sync_topics()
    return flow


def committed(pair: KafkaPair, topic: str) -> list[bytes | None]:
    return [record.value for record in consume(pair.target, f"A.{topic}", isolation="read_committed")]


def every(pair: KafkaPair, topic: str) -> list[bytes | None]:
    return [record.value for record in consume(pair.target, f"A.{topic}", isolation="read_uncommitted")]


def forgets() -> None:
    """Let the broker look several times."""
    time.sleep(1)


def test_given_old_records_when_they_are_copied_then_a_transaction_takes_one_offset_of_each_partition(
    pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(pair.source, topic_name, partitions=2)
    written = produce(pair.source, topic_name, [*records(300), *records(200, partition=1)])
    flow = old_flow(tmp_path, pair, topic_name)

    report = flow.run()

    assert (report.records, report.errors) == (500, ())
    assert committed(pair, topic_name) == [record.value for record in written]
    assert [watermarks(pair.target, f"A.{topic_name}", n)[1] for n in (0, 1)] == [301, 201]
    assert flow.position(topic_name).target_offset == 301
    # The next start is clean: nothing is fenced and nothing is read.
    produce(pair.source, topic_name, records(5, start=300))
    (result,) = flow.run().results
    assert (result.records, result.recovered, result.runs[0]) == (5, 0, (300, 301, 5))


def test_given_records_of_the_present_when_they_are_copied_then_there_is_no_transaction(
    pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(pair.source, topic_name)
    produce(pair.source, topic_name, [replace(record, timestamp_ms=None) for record in records(100)])
    flow = old_flow(tmp_path, pair, topic_name)

    assert flow.run().records == 100

    assert watermarks(pair.target, f"A.{topic_name}")[1] == 100


def test_given_old_records_behind_new_ones_when_they_are_copied_then_their_order_is_kept(
    pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(pair.source, topic_name)
    new = [replace(record, timestamp_ms=None) for record in records(50)]
    written = produce(
        pair.source, topic_name, [*new, *records(50, start=50), *new], batch_num_messages=10, linger_ms=50
    )
    settings = {"mirror.batch.passthrough.min.bytes": "1", "mirror.batch.max.bytes": "1024"}
    flow = old_flow(tmp_path, pair, topic_name, **settings)

    assert flow.run().errors == ()

    assert committed(pair, topic_name) == [record.value for record in written]


def test_given_a_run_that_slept_when_the_broker_has_forgotten_it_then_it_appends_nothing(
    pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(pair.source, topic_name)
    written = produce(pair.source, topic_name, records(60))
    flow = old_flow(tmp_path, pair, topic_name)
    job = asleep(flow)
    successor = flow.run()
    forgets()

    woken = copy_bin(claimed(job, seconds_ago=0), 0)

    assert successor.errors == ()
    assert [type(result.error) for result in woken] == [FencedError]
    assert every(pair, topic_name) == [record.value for record in written]


def test_given_a_task_that_begins_after_a_successor_has_copied_and_the_broker_has_forgotten_it_then_it_appends_nothing(
    pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    """Without transactions: one task of a run waits for another one while the run's machine sleeps for a minute."""
    create_topic(pair.source, topic_name)
    written = produce(pair.source, topic_name, records(60))
    flow = old_flow(tmp_path, pair, topic_name, **{"mirror.old.records.in.transactions": "false"})
    job = asleep(flow)
    successor = flow.run()
    forgets()

    woken = copy_bin(claimed(job, seconds_ago=60), 0)

    assert successor.errors == ()
    assert [type(result.error) for result in woken] == [TargetDivergedError]
    assert every(pair, topic_name) == [record.value for record in written]


def test_given_a_run_that_died_in_its_transaction_when_the_next_one_comes_in_time_then_all_readers_see_each_record_once(
    pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(pair.source, topic_name)
    written = produce(pair.source, topic_name, records(60))
    flow = old_flow(tmp_path, pair, topic_name)

    def die_before_the_commit(job: CopyJob) -> list[PartitionResult]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mirror_lib.relay.copy.old_records.OldRecords._end", _dies)
            copy_here(up_to(40)(job))
        raise DriverKilledError

    interrupted(flow, die_before_the_commit)
    assert watermarks(pair.target, f"A.{topic_name}")[1] == 40
    assert committed(pair, topic_name) == []

    (result,) = flow.run().results

    assert (result.recovered, result.records) == (40, 20)
    values = [record.value for record in written]
    assert every(pair, topic_name) == values
    assert committed(pair, topic_name) == values
    assert flow.position(topic_name).state is PositionState.CLOSED


def test_given_a_driver_that_died_when_the_transactions_had_ended_then_its_position_is_where_the_copy_came_to(
    pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    # Else all of the copy would have to be compared, of which compaction may have left too little.
    create_topic(pair.source, topic_name)
    produce(pair.source, topic_name, records(60))
    flow = old_flow(tmp_path, pair, topic_name)

    interrupted(flow, killed_after(up_to(40)))

    position = flow.position(topic_name)
    assert (position.state, position.offset, position.target_offset) == (PositionState.OPEN, 39, 41)


@pytest.mark.parametrize("in_transactions", [{}, {"mirror.old.records.in.transactions": "false"}])
def test_given_a_refused_record_when_the_broker_has_forgotten_the_producer_then_nothing_behind_it_takes_its_place(
    pair: KafkaPair, topic_name: str, tmp_path: Path, in_transactions: dict[str, str]
) -> None:
    create_topic(pair.source, topic_name)
    now = int(time.time() * 1000)
    days = 86_400_000
    bad = set(range(30, 300, 60))
    given = [
        Record(key=b"%d" % n, value=b"%d" % n * 100, timestamp_ms=now - (400 if n in bad else 3) * days)
        for n in range(300)
    ]
    produce(pair.source, topic_name, given, batch_num_messages=10, linger_ms=50)
    settings = {
        "mirror.batch.passthrough.min.bytes": "1",
        "mirror.batch.max.bytes": "2048",
        "mirror.fetch.partition.max.bytes": "8192",
        "mirror.poison.policy": "skip",
    }
    flow = old_flow(tmp_path, pair, topic_name, **settings, **in_transactions)
    set_config(pair.target, f"A.{topic_name}", "message.timestamp.before.max.ms", str(100 * days))

    report = flow.run(bytes_per_second=20_000)

    assert report.errors == ()
    copied = [int(record.key or b"") for record in consume(pair.target, f"A.{topic_name}")]
    assert copied == [n for n in range(300) if n not in bad]


async def _dies(*_: object) -> None:
    raise DriverKilledError
