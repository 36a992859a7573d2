"""How a task's driver ends: real processes, signalled as Airflow's supervisor signals a task's whole group.

It makes no difference whether the task has started its driver itself or has had it forked by a driver host.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from mirror_lib.processes import process_facts
from tests.support.spark.driver_hosts import PROJECT, StandInHost, wait_until

#: Begins as every job does; its clean-up takes a while, as answers of a server and of the ledger do.
_JOB = """
import os, sys, time
from pathlib import Path
from spark_jobs.entry import start

notes = Path(__file__).with_name("notes")

def note(text):
    with notes.open("a") as file:
        file.write(text + "\\n")

def run(argv, open_session):
    try:
        # Inside: the signal may come as soon as this can be read.
        note(str(os.getpid()))
        time.sleep(300)
    finally:
        note("begins to clean up")
        print("a line that nobody may be there to read", flush=True)
        time.sleep(1)
        note("is done")

start(sys.argv[1:], run, copies=True)
"""
#: As Airflow runs a task: forked by a supervisor, it leads a group, and ends the operator's work when it gets SIGTERM.
_SUPERVISOR = """
import json, os, signal, sys
from mirror_lib.airflow.spark.connect_driver import ConnectDriver

def task(environment):
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.environ.update(environment)
    driver = ConnectDriver("stand_in_job", ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda *_: driver.end())
    driver.run({"SPARK_REMOTE": "sc://localhost:1"})

# The kernel forgets tasks that have ended.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            task(json.loads(line))
        finally:
            os._exit(0)
    print(pid, flush=True)
"""


@pytest.fixture(scope="module")
def supervisor() -> Iterator[subprocess.Popen[str]]:
    """Takes the environment of a task as a line of JSON, and answers with the process that runs it."""
    with subprocess.Popen(
        [sys.executable, "-c", _SUPERVISOR],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield process
        process.kill()


class Killed:
    """A task with its driver, and what the driver noted."""

    def __init__(self, supervisor: subprocess.Popen[str], folder: Path, environment: Mapping[str, str]) -> None:
        (folder / "stand_in_job.py").write_text(_JOB)
        self._notes = folder / "notes"
        self._notes.touch()
        path = os.pathsep.join([str(folder), str(PROJECT)])
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        variables = {"PYTHONPATH": path, "PYSPARK_DRIVER_PYTHON": sys.executable, **environment}
        supervisor.stdin.write(json.dumps(variables) + "\n")
        supervisor.stdin.flush()
        self.task = int(supervisor.stdout.readline())
        wait_until(lambda: len(self.noted) == 1)
        self.driver = int(self.noted[0])

    @property
    def noted(self) -> list[str]:
        return self._notes.read_text().splitlines()

    def signal_group(self, number: signal.Signals) -> None:
        os.killpg(self.task, number)

    def driver_is_gone(self) -> bool:
        return _is_gone(self.driver)

    def task_is_gone(self) -> bool:
        return _is_gone(self.task)


@pytest.fixture(params=["own", "hosted"])
def killed(request: pytest.FixtureRequest, supervisor: subprocess.Popen[str], tmp_path: Path) -> Iterator[Killed]:
    with ExitStack() as stack:
        environment: dict[str, str] = {}
        if request.param == "hosted":
            host = stack.enter_context(StandInHost(tmp_path, {"stand_in_job": _JOB}))
            environment["MIRROR_DRIVER_HOST"] = str(host.socket)
        found = Killed(supervisor, tmp_path, environment)
        assert (_parent(found.driver) == found.task) == (request.param == "own")
        yield found
        for pid in (found.task, found.driver):
            if not _is_gone(pid):
                os.kill(pid, signal.SIGKILL)
        wait_until(found.task_is_gone)


def _is_gone(pid: int) -> bool:
    facts = process_facts(pid)
    return facts is None or not facts.is_alive


def _parent(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("PPid:")).split()[1])


def test_a_killed_task_has_its_driver_clean_up_once_and_whole(killed: Killed) -> None:
    """It may get SIGTERM more than once: by whoever ends all processes of a container, and by `on_kill`."""
    os.kill(killed.driver, signal.SIGTERM)
    wait_until(lambda: len(killed.noted) == 2)
    killed.signal_group(signal.SIGTERM)
    wait_until(killed.task_is_gone)

    assert killed.noted[1:] == ["begins to clean up", "is done"]
    assert killed.driver_is_gone()


def test_the_driver_cleans_up_though_the_supervisor_kills_the_group_meanwhile(killed: Killed) -> None:
    """Airflow gives a group five seconds (`WatchedSubprocess.kill`)."""
    killed.signal_group(signal.SIGTERM)
    wait_until(lambda: len(killed.noted) == 2)
    killed.signal_group(signal.SIGKILL)
    wait_until(killed.driver_is_gone)

    assert killed.noted[1:] == ["begins to clean up", "is done"]


def test_the_driver_of_a_task_that_was_killed_outright_ends_too(killed: Killed) -> None:
    killed.signal_group(signal.SIGKILL)
    wait_until(killed.driver_is_gone)

    assert killed.noted[1:] == ["begins to clean up", "is done"]
