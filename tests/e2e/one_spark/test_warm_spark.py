"""Runs on a Spark that waits for them: a real Spark Connect server, real brokers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.copy.job.report import JobReport
from mirror_lib.features.demo.driver_host import DriverHost
from mirror_lib.features.demo.ports import free_ports
from mirror_lib.features.verify.job_arguments import VerifyArguments
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.features.warm_spark.driver_host_protocol import DriverRequest
from mirror_lib.spark.connect_server import REMOTE_VARIABLE, ConnectAddress
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, records
from tests.support.spark.driver_hosts import Driver

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS = 60


@pytest.fixture
def flow(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> Flow:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    produce(kafka_pair.source, topic_name, [*records(300), *records(200, partition=1)])
    found = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    found.sync_topics()
    return found


def python_only(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which no Java is found: a driver that wanted a Spark of its own would fail."""
    kept = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", REMOTE_VARIABLE)}
    return {**kept, "PATH": str(folder), "PYTHONPATH": str(_PROJECT), **more}


def without_offsets(found: list[Record]) -> list[Record]:
    """In the order of each partition."""
    return sorted((replace(record, offset=None) for record in found), key=lambda record: record.partition)


def workers_of(server: ConnectAddress) -> str:
    """The Python workers that two tasks get."""
    done = subprocess.run(
        [sys.executable, "-m", "spark_jobs.warm", server.url],
        env=python_only(_PROJECT),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def replicate(flow: Flow, folder: Path, *words: str, environment: Mapping[str, str]) -> tuple[int, JobReport, str]:
    report = folder / "report.json"
    arguments = JobArguments(config=flow.path, flow="A->B", report=report)
    done = subprocess.run(
        [sys.executable, "-m", "spark_jobs.replicate", *arguments.command_line(), *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    found = JobReport.read(report)
    assert found is not None, done.stderr[-3000:]
    return done.returncode, found, done.stderr


@pytest.mark.timeout(300)
def test_runs_without_a_spark_of_their_own_copy_and_compare_in_the_same_workers(
    server: ConnectAddress, flow: Flow, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    before = workers_of(server)

    code, first, _ = replicate(flow, tmp_path, f"--remote={server}", environment=python_only(tmp_path))
    produce(kafka_pair.source, topic_name, records(50, start=300))
    again, second, _ = replicate(flow, tmp_path, environment=python_only(tmp_path, SPARK_REMOTE=server.url))

    assert (code, first.records, again, second.records) == (0, 500, 0, 50)
    assert consume(kafka_pair.target, f"A.{topic_name}") == consume(kafka_pair.source, topic_name)
    assert workers_of(server) == before
    compared = subprocess.run(
        [
            *(sys.executable, "-m", "spark_jobs.verify", f"--remote={server}"),
            *VerifyArguments(config=flow.path, flow="A->B", mode=VerifyMode.FULL).command_line(),
        ],
        env=python_only(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert compared.returncode == 0, compared.stderr[-3000:]


def hosted(drivers: DriverHost, folder: Path, module: str, words: Sequence[str], server: ConnectAddress) -> Driver:
    environment = python_only(folder, SPARK_REMOTE=server.url)
    return Driver(drivers.socket, DriverRequest(module, tuple(words), environment, str(folder), 0o022), folder)


@pytest.mark.timeout(300)
def test_drivers_of_a_driver_host_copy_and_compare_one_after_the_other(
    server: ConnectAddress, drivers: DriverHost, flow: Flow, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    for expected, new in ((500, []), (50, records(50, start=300))):
        produce(kafka_pair.source, topic_name, new)
        report = tmp_path / "report.json"
        arguments = JobArguments(config=flow.path, flow="A->B", report=report)
        with hosted(drivers, tmp_path, "spark_jobs.replicate", arguments.command_line(), server) as driver:
            assert driver.process.wait(_SECONDS) == 0, driver.errors[-3000:]
        found = JobReport.read(report)
        assert found.records == expected

    compared = VerifyArguments(config=flow.path, flow="A->B", mode=VerifyMode.RECENT)
    with hosted(drivers, tmp_path, "spark_jobs.verify", compared.command_line(), server) as driver:
        assert driver.process.wait(_SECONDS) == 0, driver.errors[-3000:]
    assert consume(kafka_pair.target, f"A.{topic_name}") == consume(kafka_pair.source, topic_name)
    # The host itself talks to nobody, however many drivers it has given.
    assert drivers.process is not None
    assert len(list(Path(f"/proc/{drivers.process.pid}/task").iterdir())) == 1


@pytest.mark.timeout(300)
def test_a_server_that_is_not_there_is_told_at_once_and_the_run_can_be_repeated(flow: Flow, tmp_path: Path) -> None:
    nowhere = f"sc://127.0.0.1:{free_ports(1)[0]}/;token=hush"

    code, report, told = replicate(flow, tmp_path, environment=python_only(tmp_path, SPARK_REMOTE=nowhere))

    assert code == 1
    assert report.error is not None
    assert report.error.reason == "spark-unreachable"
    assert "hush" not in told
    assert [run.state for run in flow.ledger.runs("A->B", limit=1)] == ["failed"]


@pytest.mark.timeout(300)
def test_a_driver_that_is_ended_ends_its_tasks_on_the_server_and_the_next_run_goes_on(
    server: ConnectAddress, flow: Flow, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    # At this rate it would take minutes, and both places for tasks are taken.
    slow = JobArguments(config=flow.path, flow="A->B", run_id="ended", tasks=2, bytes_per_second=100)
    driver = subprocess.Popen(
        [sys.executable, "-m", "spark_jobs.replicate", *slow.command_line()],
        env=python_only(tmp_path, SPARK_REMOTE=server.url),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + _SECONDS
    while not flow.ledger.partition_runs("ended"):
        assert driver.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)

    driver.send_signal(signal.SIGTERM)
    _, told = driver.communicate(timeout=_SECONDS)

    assert driver.returncode == 128 + signal.SIGTERM, told[-3000:]
    assert "interrupted" in told
    assert flow.ledger.run("ended").state == "failed"  # type: ignore[union-attr]
    # Two tasks at the same time find their places free.
    workers_of(server)
    code, report, told = replicate(flow, tmp_path, environment=python_only(tmp_path, SPARK_REMOTE=server.url))
    assert (code, report.error) == (0, None), told[-3000:]
    # What was interrupted has left marks in the target's log, so offsets differ.
    copies, originals = consume(kafka_pair.target, f"A.{topic_name}"), consume(kafka_pair.source, topic_name)
    assert without_offsets(copies) == without_offsets(originals)
