"""`mirror plan`, `mirror run` and `mirror status`, as a person runs them: in processes of their own, with Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.local_state import project_root
from mirror_lib.dev.processes import process_facts, session_members
from mirror_lib.ledger.store import Ledger
from tests.support.flows import Flow
from tests.support.kafka import consume, records
from tests.support.mirrored_topic import MirroredTopic

_SECONDS = 240


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "MIRROR_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    """A topic with 900 records in two partitions that was never copied."""
    mirrored.create([*records(600), *records(300, partition=1)], partitions=2)
    return mirrored.flow()


def test_given_new_records_when_planned_run_and_looked_at_then_every_command_tells_the_same(
    flow: Flow, mirrored: MirroredTopic, environment: dict[str, str]
) -> None:
    """One test for a whole session at the terminal: every start of Spark costs ten seconds."""
    told = ("--config", str(flow.path), "--flow", "A->B")
    dry = mirror(environment, "run", *told, "--dry-run")
    assert [step["name"] for step in dry["topics"]["create"]] == [mirrored.remote]
    # The target topic is still missing, but the run would make it first.
    assert dry["problems"] == []
    assert [(row["partition"], row["start"], row["end"]) for row in dry["partitions"]] == [(0, 0, 600), (1, 0, 300)]

    done = mirror(environment, "run", *told, "--tasks", "1", "--max-seconds", "0")
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)
    assert done["run"]["records"] == 900
    assert done["failures"] == []
    assert [(row["topic"], row["target_topic"], row["partitions"], row["records"]) for row in done["copied"]] == [
        (mirrored.name, mirrored.remote, 2, 900)
    ]

    mirrored.produce(records(40, partition=1, start=300))
    plan = mirror(environment, "plan", *told)
    assert [(row["partition"], row["start"], row["end"]) for row in plan["partitions"]] == [(1, 300, 340)]
    assert (plan["tasks"], plan["idle_partitions"], plan["problems"]) == (1, 1, [])

    runs = mirror(environment, "status", "--config", str(flow.path))["runs"]
    assert [(run["id"], run["state"], run["records"], run["trigger"]) for run in runs] == [
        (done["run_id"], "succeeded", 900, "cli")
    ]
    one = mirror(environment, "status", "--config", str(flow.path), "--run", done["run_id"])
    assert sorted((row["partition"], row["records"], row["state"]) for row in one["partitions"]) == [
        (0, 600, "done"),
        (1, 300, "done"),
    ]


def test_given_a_target_that_holds_foreign_records_when_run_then_it_ends_with_3_and_says_what_to_do(
    flow: Flow, mirrored: MirroredTopic, environment: dict[str, str]
) -> None:
    flow.sync_topics()
    mirrored.produce_remote(records(5))

    done = mirror(environment, "run", "--config", str(flow.path), "--flow", "A->B", "--no-topics", expected=3)

    assert [(each["topic"], each["partition"], each["reason"]) for each in done["failures"]] == [
        (mirrored.name, 0, "target-not-empty")
    ]
    assert all(each["action"] for each in done["failures"])
    assert done["run"]["records"] == 300, "the other partition is copied"


def test_given_a_run_under_way_when_interrupted_then_no_process_stays_and_the_ledger_says_failed(
    flow: Flow, environment: dict[str, str]
) -> None:
    command = subprocess.Popen(
        [*PROGRAM, "run", "--config", str(flow.path), "--flow", "A->B", "--json"],
        env=environment,
        cwd=project_root(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        run_id, child = _wait_for_job(flow.ledger, command)
        command.send_signal(signal.SIGINT)
        shown, errors = command.communicate(timeout=60)
    finally:
        if command.poll() is None:
            command.kill()
            command.communicate()

    assert command.returncode == 1, errors
    assert json.loads(shown)["error"]["reason"] == "interrupted"
    assert session_members(child) == ()
    row = flow.ledger.run(run_id)
    assert row is not None
    assert row.state == "failed"


def test_given_a_run_that_was_killed_when_run_again_then_the_ledger_says_that_it_died(
    flow: Flow, environment: dict[str, str]
) -> None:
    arguments = [*PROGRAM, "run", "--config", str(flow.path), "--flow", "A->B", "--json"]
    command = subprocess.Popen(
        arguments, env=environment, cwd=project_root(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        run_id, child = _wait_for_job(flow.ledger, command)
        os.killpg(child, signal.SIGKILL)
    finally:
        command.kill()
        command.communicate()

    subprocess.run(arguments, env=environment, cwd=project_root(), check=True, capture_output=True, timeout=_SECONDS)

    row = flow.ledger.run(run_id)
    assert row is not None
    assert (row.state, row.error and row.error["reason"]) == ("failed", "run-died")


PROGRAM = [sys.executable, "-m", "mirror_lib.cli.main"]


def _wait_for_job(ledger: Ledger, command: subprocess.Popen[str]) -> tuple[str, int]:
    """Wait until the job has begun its run; the run's id and the id of the child."""
    deadline = time.monotonic() + _SECONDS
    while not (runs := ledger.runs("A->B")):
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    (child,) = (
        pid
        for pid in map(int, Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split())
        if (facts := process_facts(pid)) is not None and facts.session == pid
    )
    return runs[0].id, child


def mirror(environment: dict[str, str], *arguments: str, expected: int = 0) -> dict[str, Any]:
    answer = subprocess.run(
        [*PROGRAM, *arguments, "--json"],
        env=environment,
        cwd=project_root(),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert answer.returncode == expected, answer.stderr + answer.stdout
    found: dict[str, Any] = json.loads(answer.stdout)
    return found
