"""A flow's job on a Spark cluster whose executors have nothing but the packed environment, and executors that die."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.copy.job.arguments import JobArguments
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, records, watermarks
from tests.support.spark.submitted_jobs import ClusterOfJobs, SubmittedJob, bare_environment
from tools.testbed.spark_cluster import SparkCluster

pytestmark = pytest.mark.timeout(900)
PARTITIONS = 4
#: Of each partition; at the speed below they take longer than everything that a test does meanwhile.
RECORDS = 3_000
SLOW = 1_000_000
LEASE_SECONDS = 3

_RETRYING = """\
import runpy
from pyspark.sql import SparkSession

SparkSession.builder.config("spark.task.maxFailures", "3").getOrCreate()
runpy.run_module("spark_jobs.replicate", run_name="__main__")
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfJobs]:
    folder = tmp_path_factory.mktemp("spark")
    archive = folder / "mirror-environment.tar.gz"
    packed = CliRunner().invoke(app, ["spark", "pack", "--output", str(archive), "--json"])
    assert packed.exit_code == 0, packed.output
    with SparkCluster(folder / "cluster", workers=2, cores=2, environment=bare_environment()) as spark:
        jobs = ClusterOfJobs(spark, archive)
        try:
            yield jobs
        finally:
            jobs.end_drivers()


def _written(pair: KafkaPair, topic: str, count: int) -> list[Record]:
    create_topic(pair.source, topic, partitions=PARTITIONS)
    return [
        record
        for number in range(PARTITIONS)
        for record in produce(
            pair.source, topic, records(count, size=1_000, partition=number, start=number * count), batch_size=16_000
        )
    ]


def _content(all_of_them: list[Record]) -> list[tuple[object, ...]]:
    return [(each.partition, each.key, each.value, each.headers, each.timestamp_ms) for each in all_of_them]


def _flow(folder: Path, pair: KafkaPair, topic: str) -> Flow:
    settings = {"tasks.max": str(PARTITIONS), "mirror.run.lease.seconds": str(LEASE_SECONDS)}
    flow = pair_flow(folder, pair, topics=topic, settings=settings)
    flow.sync_topics()
    return flow


def _arguments(flow: Flow, *, bytes_per_second: int | None = None) -> JobArguments:
    return JobArguments(config=flow.path, flow="A->B", bytes_per_second=bytes_per_second)


def _wait_for_copies(job: SubmittedJob, pair: KafkaPair, topic: str) -> None:
    """Until every partition has a part of its records on the target."""
    remaining = set(range(PARTITIONS))

    def begun() -> bool:
        # The topic is young: its leaders may not know of it yet.
        with suppress(KafkaException):
            remaining.difference_update(
                [each for each in remaining if watermarks(pair.target, f"A.{topic}", each)[1] > 0]
            )
        return not remaining

    job.wait_until(begun)


def test_no_python_of_the_executors_machine_has_what_tasks_import() -> None:
    environment = bare_environment()
    names = (f"python{sys.version_info.major}.{sys.version_info.minor}", "python3", sys._base_executable)
    pythons = {found for name in names if (found := shutil.which(name, path=environment["PATH"])) is not None}

    for module in ("aiokafka", "pyarrow", "mirror_lib"):
        for python in pythons:
            done = subprocess.run([python, "-c", f"import {module}"], cwd="/", env=environment, capture_output=True)
            assert done.returncode != 0, f"{python} has {module}"


def test_bins_run_on_both_executors_and_the_target_equals_the_source(
    cluster: ClusterOfJobs, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    written = _written(kafka_pair, topic_name, 500)
    flow = _flow(tmp_path, kafka_pair, topic_name)

    job = cluster.submit(tmp_path / "run", _arguments(flow))
    report = job.wait()

    assert report["exit_code"] == 0, job.log()
    assert report["records"] == len(written)
    ends = job.task_ends()
    assert len(ends) == PARTITIONS
    assert {end.executor for end in ends} == {"0", "1"}
    assert _content(consume(kafka_pair.target, f"A.{topic_name}")) == _content(written)


def test_spark_may_repeat_the_tasks_of_an_executor_that_was_killed(
    cluster: ClusterOfJobs, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    """With a higher `spark.task.maxFailures` the run itself takes over."""
    written = _written(kafka_pair, topic_name, RECORDS)
    flow = _flow(tmp_path, kafka_pair, topic_name)
    retrying = tmp_path / "retrying.py"
    retrying.write_text(_RETRYING)

    job = cluster.submit(tmp_path / "run", _arguments(flow, bytes_per_second=SLOW), job=retrying, packed=False)
    _wait_for_copies(job, kafka_pair, topic_name)
    cluster.spark.executors()[0].kill()
    report = job.wait()

    assert report["exit_code"] == 0, job.log()
    ends = job.task_ends()
    assert sum(end.failed for end in ends) == 2
    assert sum(end.attempt == 1 and not end.failed for end in ends) == 2
    assert sum(partition["recovered"] > 0 for partition in report["partitions"]) == 2
    assert _content(consume(kafka_pair.target, f"A.{topic_name}")) == _content(written)


def test_an_executor_that_was_frozen_and_wakes_up_after_the_next_run_repeats_nothing(
    cluster: ClusterOfJobs, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    """As on a machine that was suspended: nobody there has noticed that the run was given up."""
    written = _written(kafka_pair, topic_name, RECORDS)
    flow = _flow(tmp_path, kafka_pair, topic_name)

    job = cluster.submit(tmp_path / "frozen", _arguments(flow, bytes_per_second=SLOW), packed=False)
    _wait_for_copies(job, kafka_pair, topic_name)
    executor = cluster.spark.executors()[0]
    daemon, *tasks = executor.python_processes
    frozen = cluster.spark.freeze(executor.worker)
    try:
        assert set(frozen) > {daemon, *tasks}
        assert all(_connections(pid, kafka_pair) for pid in tasks)
        job.process.kill()
        time.sleep(LEASE_SECONDS)
        next_run = flow.run(sync=False)
        ends = _ends(kafka_pair, topic_name)
        for pid in tasks:
            os.kill(pid, signal.SIGCONT)
        # Each has half of its records before it, and goes on with them until a broker refuses it.
        _wait_until(lambda: not any(_connections(pid, kafka_pair) for pid in tasks))
        assert all(psutil.pid_exists(pid) for pid in tasks), "they were killed, and not refused"
    finally:
        for pid in reversed(frozen):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    assert next_run.errors == ()
    assert _ends(kafka_pair, topic_name) == ends
    assert _content(consume(kafka_pair.target, f"A.{topic_name}")) == _content(written)


def _ends(pair: KafkaPair, topic: str) -> list[tuple[int, int]]:
    return [watermarks(pair.target, f"A.{topic}", number) for number in range(PARTITIONS)]


def _connections(pid: int, pair: KafkaPair) -> int:
    """How many connections of a process lead to the brokers."""
    servers = {pair.source.bootstrap_servers, pair.target.bootstrap_servers}
    try:
        found = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return 0
    return sum(bool(each.raddr) and f"{each.raddr.ip}:{each.raddr.port}" in servers for each in found)


def _wait_until(so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not so():
        assert time.monotonic() < deadline, "a task that has lost its partitions goes on"
        time.sleep(0.1)
