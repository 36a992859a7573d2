"""`mirror dev`, as a person runs it: in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.local_state import project_root
from mirror_lib.dev.processes import session_members

PROGRAM = [sys.executable, "-m", "mirror_lib.cli.main", "dev"]


@pytest.fixture
def environment(kafka_jars: Path, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "MIRROR_STATE_DIR": str(tmp_path / "state"), "MIRROR_JARS_DIR": str(kafka_jars.parent)}


def test_given_nothing_when_up_twice_and_down_then_the_clusters_stay_the_same_and_leave_no_process(
    environment: dict[str, str], tmp_path: Path
) -> None:
    try:
        first = dev("up", environment)
        second = dev("up", environment)
        seen = dev("status", environment)
    finally:
        down = dev("down", environment)
    after = dev("status", environment, expected=1)

    assert first == second
    assert [cluster["name"] for cluster in first["clusters"]] == ["A", "B"]
    assert seen["clusters"] == first["clusters"]
    assert down["stopped"] == ["A", "B"]
    assert [cluster["running"] for cluster in after["clusters"]] == [False, False]
    assert all(session_members(int(cluster["pid"])) == () for cluster in first["clusters"])
    written = (tmp_path / "state" / "mirror.properties").read_text()
    assert all(cluster["bootstrap_servers"] in written for cluster in first["clusters"])


def test_given_a_properties_file_of_somebodys_own_when_up_then_it_is_left_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "state" / "mirror.properties"
    own.parent.mkdir()
    own.write_text("# mine\n")
    try:
        dev("up", environment)
    finally:
        dev("down", environment)

    assert own.read_text() == "# mine\n"


def dev(command: str, environment: dict[str, str], expected: int = 0) -> dict[str, Any]:
    answer = subprocess.run(
        [*PROGRAM, command, "--json"],
        env=environment,
        cwd=project_root(),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert answer.returncode == expected, answer.stderr + answer.stdout
    found: dict[str, Any] = json.loads(answer.stdout)
    return found
