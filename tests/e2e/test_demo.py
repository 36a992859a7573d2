"""`mirror demo` as people run it, in a state folder of its own; nothing may be left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.features.demo.ports import free_ports
from mirror_lib.features.demo.state import jars_dir

RECORDS = 5_000
_DEMO_SECONDS = 540


class Demo:
    """The command, and the processes that belong to its state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")},
            "MIRROR_STATE_DIR": str(folder),
            "MIRROR_JARS_DIR": str(jars_dir()),
            "MIRROR_AIRFLOW_PORT": str(free_ports(1)[0]),
        }

    def call(self, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "mirror_lib.cli.main", "demo", *arguments, "--json"],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_DEMO_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return json.loads(done.stdout)

    def processes(self) -> dict[int, str]:
        """Processes that were started for this demo, by the environment they inherited."""
        mark = f"MIRROR_STATE_DIR={self.folder}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
            except OSError:
                continue
        return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = Demo(tmp_path_factory.mktemp("demo"))
    yield demo
    demo.call("stop")


@pytest.mark.timeout(1800)
def test_the_demo_copies_runs_again_with_only_the_new_and_leaves_nothing_running(demo: Demo) -> None:
    # When it runs on an empty folder.
    first = demo.call("--records", str(RECORDS))
    # Then every topic was copied, and the counts agree.
    assert len(first["copied"]) == 7
    assert all(topic["equal"] for topic in first["copied"])
    assert first["run"]["copied"] == first["run"]["written"] >= RECORDS * 0.9

    # When it runs again, then it copies just what it wrote this time.
    second = demo.call("--records", str(RECORDS))
    assert second["run"]["copied"] == second["run"]["written"]
    assert all(topic["equal"] for topic in second["copied"])
    for topic in second["copied"]:
        assert topic["on_the_target"] >= topic["records"]

    # When it is stopped, then no process of it is left.
    assert demo.processes()
    assert set(demo.call("stop")["ended"]) == {"Airflow", "cluster A", "cluster B"}
    assert demo.processes() == {}
