"""`mirror plan`, `mirror run` and `mirror status`, as a person runs them: in processes of their own, with Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.local_state import project_root
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


PROGRAM = [sys.executable, "-m", "mirror_lib.cli.main"]


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
    return json.loads(answer.stdout)
