"""Brokers that die, move their leaders or restart during a copy: the task goes on, nothing is lost or repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.transforms.copy import row_sink as writing
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.flows import Flow, copy_here, make_flow
from tests.support.kafka import consume, create_topic, leaders, produce, records, watermarks
from tests.support.names import unique_name
from tests.support.transforming import WITH_CHANCE, TransformHere, marked, originals

_PARTITIONS = 3
_PER_PARTITION = 15_000


@pytest.fixture(scope="module")
def _one_broker(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster("alone", directory=brokers_folder / unique_name("alone"), jars=kafka_jars) as cluster:
        yield cluster


@pytest.fixture
def one_broker(_one_broker: KafkaCluster) -> KafkaCluster:
    """A cluster of one broker that runs; a test may kill or restart it."""
    return _one_broker.start()


def settings_of(cluster: KafkaCluster, settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of a flow from this cluster to itself."""
    return {
        "A->B.replication.factor": str(cluster.brokers),
        "offset-syncs.topic.replication.factor": str(cluster.brokers),
        "B.offset.storage.replication.factor": str(cluster.brokers),
        "A->B.tasks.max": "2",
        "mirror.retry.max.seconds": "60",
        **settings,
    }


def slow_flow(folder: Path, cluster: KafkaCluster, topic: str) -> Flow:
    """A flow whose copy takes many small requests, so that a fault falls into the middle of it."""
    # On a busy machine the copy could end before the fault is injected: 13 MB take two seconds.
    settings = settings_of(cluster, {"mirror.rate.limit.bytes": "6000000"})
    servers = cluster.bootstrap_servers
    flow = make_flow(folder, servers, servers, topics=topic, settings=settings).with_settings(
        fetch_max_bytes=100_000,
        fetch_partition_max_bytes=50_000,
        task_memory_bytes=200_000,
        batch_max_bytes=20_000,
        produce_max_in_flight=2,
    )
    flow.sync_topics()
    return flow


def fill(cluster: KafkaCluster, topic: str) -> None:
    """Write batches to every partition, each about as large as what one fetch of a partition returns."""
    create_topic(cluster, topic, partitions=_PARTITIONS)
    for partition in range(_PARTITIONS):
        produce(cluster, topic, records(_PER_PARTITION, size=300, partition=partition), batch_num_messages=140)


def while_copying(
    target: KafkaCluster,
    topic: str,
    fault: Callable[[], None],
    copy: Callable[[CopyJob], list[PartitionResult]] = copy_here,
) -> Callable[[CopyJob], list[PartitionResult]]:
    """A runner in which `fault` happens once the first records have arrived."""

    def run(job: CopyJob) -> list[PartitionResult]:
        with ThreadPoolExecutor(max_workers=1) as pool:
            copying = pool.submit(copy, job)
            while watermarks(target, topic, 0)[1] < 500:
                assert not copying.done(), "the copy ended before the fault"
                time.sleep(0.01)
            assert not copying.done(), "the copy ended before the fault"
            fault()
            return copying.result()

    return run


def test_a_source_and_target_broker_is_killed(three_brokers: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    fill(three_brokers, topic_name)
    flow, remote = slow_flow(tmp_path, three_brokers, topic_name), f"A.{topic_name}"

    def fault() -> None:
        three_brokers.kill(leaders(three_brokers, remote)[0])

    report = flow.run(runner=while_copying(three_brokers, remote, fault))

    assert report.errors == ()
    assert report.records == _PARTITIONS * _PER_PARTITION
    assert consume(three_brokers, remote) == consume(three_brokers, topic_name)


def test_the_only_broker_of_both_sides_restarts(one_broker: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    fill(one_broker, topic_name)
    flow, remote = slow_flow(tmp_path, one_broker, topic_name), f"A.{topic_name}"
    (broker,) = one_broker.node_ids

    report = flow.run(runner=while_copying(one_broker, remote, lambda: one_broker.restart(broker)))

    assert report.errors == ()
    assert consume(one_broker, remote) == consume(one_broker, topic_name)


def test_retries_end_after_their_time_and_the_next_run_is_told(
    one_broker: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    fill(one_broker, topic_name)
    flow = slow_flow(tmp_path, one_broker, topic_name).with_settings(retry_max_seconds=3.0)
    remote = f"A.{topic_name}"
    (broker,) = one_broker.node_ids
    seen: list[PartitionResult] = []
    copy = while_copying(one_broker, remote, lambda: one_broker.kill(broker))

    def die_and_come_back(job: CopyJob) -> list[PartitionResult]:
        seen.extend(copy(job))
        one_broker.start()
        return seen

    report = flow.run(runner=die_and_come_back)

    # A partition other than the watched one may have ended before the fault.
    stopped = [result for result in seen if not result.complete]
    assert 0 in {result.target.partition for result in stopped}
    for error, result in zip(report.errors, stopped, strict=True):
        assert error.where.topic == topic_name
        assert error.action
        # What was acknowledged is there, whether or not a lost answer hides more.
        assert watermarks(one_broker, remote, result.target.partition)[1] >= result.target_next


@pytest.mark.parametrize("brokers", [3, 1])
def test_given_transactions_when_a_broker_is_killed_or_the_only_one_restarts_then_committed_records_are_there_once(
    request: pytest.FixtureRequest, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brokers: int
) -> None:
    monkeypatch.setattr(writing, "TRANSACTION_SECONDS", 0.2)
    cluster: KafkaCluster = request.getfixturevalue("three_brokers" if brokers == 3 else "one_broker")
    fill(cluster, topic_name)
    # Records are never the same twice, in many short transactions.
    settings = {**WITH_CHANCE, "mirror.batch.max.bytes": "20000"}
    servers, remote = cluster.bootstrap_servers, f"A.{topic_name}"
    flow = make_flow(tmp_path, servers, servers, topics=topic_name, settings=settings_of(cluster, settings))
    flow.sync_topics()
    broker = leaders(cluster, remote)[0]
    fault = cluster.kill if brokers == 3 else cluster.restart
    copy = TransformHere(marked, exact=False, rows_at_once=200)

    flow.run(runner=while_copying(cluster, remote, lambda: fault(broker), copy), sync=False)
    if brokers == 3:
        cluster.restart(broker)
    # Whatever a transaction lost by that, the next run makes up for.
    until = time.monotonic() + 120
    while (report := flow.run(runner=copy, sync=False)).errors:
        assert time.monotonic() < until, report.errors

    assert originals(consume(cluster, remote)) == originals(consume(cluster, topic_name))
