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
from mirror_lib.processes import session_members

PROGRAM = [sys.executable, "-m", "mirror_lib.cli.main", "dev"]


@pytest.fixture
def environment(kafka_jars: Path, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "MIRROR_STATE_DIR": str(tmp_path / "state"), "MIRROR_JARS_DIR": str(kafka_jars.parent)}


def test_given_nothing_when_up_twice_and_down_then_the_clusters_stay_the_same_and_leave_no_process(
    environment: dict[str, str], tmp_path: Path
) -> None:
    properties = tmp_path / "state" / "mirror.properties"
    try:
        first = dev("up", environment)
        written = properties.read_text()
        properties.write_text("# mine\n")
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
    assert all(cluster["bootstrap_servers"] in written for cluster in first["clusters"])
    # An operator's own file is left alone.
    assert properties.read_text() == "# mine\n"


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
    return json.loads(answer.stdout)
