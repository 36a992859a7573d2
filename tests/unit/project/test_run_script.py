"""The script `run`, with tools that only say that they were called."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mirror_lib.processes import process_facts

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS = 30.0


def clone(folder: Path, **tools: str) -> Path:
    """A clone that is set up; each tool is a shell script in its environment."""
    shutil.copy(_PROJECT / "run", folder)
    (folder / "tests" / "unit").mkdir(parents=True)
    (folder / "tests" / "support").mkdir()
    shutil.copy(_PROJECT / "tests" / "support" / "system_packages.sh", folder / "tests" / "support")
    (folder / "tests" / "unit" / "test_something.py").touch()
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, script in {"mirror": "", "ruff": "", "mypy": "", "lint_imports": "", "python": "", **tools}.items():
        program = programs / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    for name in ("requirements.lock", "pyproject.toml", ".venv/pyvenv.cfg"):
        (folder / name).touch()
    checksum = subprocess.run(["cksum"], input=b"", capture_output=True, check=True).stdout.decode()
    (folder / ".venv" / ".setup-stamp").write_text(f"{folder.resolve()}\n{checksum}")
    return folder


def wait_for(path: Path) -> int:
    """The process id that a tool has written."""
    deadline = time.monotonic() + _SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} was not written"
        time.sleep(0.02)
    return int(path.read_text())


def is_running(pid: int) -> bool:
    facts = process_facts(pid)
    return facts is not None and facts.is_alive


#: pytest takes an interrupt although the shell has its background jobs ignore it.
_INTERRUPTIBLE = (
    "import os, pathlib, signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "new = pathlib.Path(sys.argv[1] + '.new'); new.write_text(str(os.getpid())); new.rename(sys.argv[1]); "
    "time.sleep(300)"
)
WAITING = f'exec {sys.executable} -c "{_INTERRUPTIBLE}" "$0.pid"'
#: Answers which tests are in a lane, and waits when it is to run them.
WAITING_PYTHON = f'case "$*" in *tests.lanes*) echo tests/unit ;; *) {WAITING} ;; esac'


@contextmanager
def waiting_check(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A `./run check` whose types and tests wait; they are ended at last."""
    clone(folder, mypy=WAITING, python=WAITING_PYTHON)
    run = subprocess.Popen(["./run", "check"], cwd=folder, stderr=subprocess.PIPE, start_new_session=True)
    tools = [wait_for(folder / ".venv" / "bin" / f"{name}.pid") for name in ("mypy", "python")]
    try:
        yield run, tools
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate(timeout=_SECONDS)


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_given_checks_beside_tests_when_ended_then_neither_runs_on(tmp_path: Path, number: signal.Signals) -> None:
    with waiting_check(tmp_path) as (run, tools):
        if number == signal.SIGINT:
            os.killpg(run.pid, number)
        else:
            run.send_signal(number)

        run.wait(timeout=_SECONDS)
        assert run.returncode == 128 + number
        assert [pid for pid in tools if is_running(pid)] == []


@pytest.mark.integration
def test_given_a_run_in_a_checkout_when_another_starts_then_it_names_the_first_and_stops(tmp_path: Path) -> None:
    with waiting_check(tmp_path) as (run, _):
        second = subprocess.run(["./run", "check"], cwd=tmp_path, capture_output=True, text=True, check=False)

        assert second.returncode == 2
        assert f"tests run in this checkout already (process {run.pid})" in second.stderr
        assert run.poll() is None


def test_given_a_disk_without_room_when_tests_are_to_run_then_that_is_said_and_nothing_starts(tmp_path: Path) -> None:
    folder = clone(tmp_path, python="touch started")
    full = "#!/bin/sh\necho Filesystem 1M-blocks Used Available Capacity Mounted\necho /dev/sda 9000 8988 12 99% /\n"
    (folder / "df").write_text(full)
    (folder / "df").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"

    done = subprocess.run(
        ["./run", "check"], cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )

    assert done.returncode == 2
    assert f"the disk of {folder.resolve()} has 12 MB left" in done.stderr
    assert not (folder / "started").exists()


def test_given_a_check_that_fails_beside_tests_that_pass_then_the_command_fails_and_shows_what_it_said(
    tmp_path: Path,
) -> None:
    folder = clone(tmp_path, mypy="echo that is no type; exit 1")

    done = subprocess.run(["./run", "check"], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)

    assert done.returncode == 1
    assert "that is no type" in done.stderr
    assert "failed: static_checks" in done.stderr


@pytest.mark.parametrize("stamp", ["another clone's", "missing"])
def test_given_a_link_to_the_environment_of_another_clone_when_setting_up_then_that_is_refused_and_not_emptied(
    tmp_path: Path, stamp: str
) -> None:
    (tmp_path / "other").mkdir()
    environment = clone(tmp_path / "other") / ".venv"
    if stamp == "missing":
        (environment / ".setup-stamp").unlink()
    before = sorted(str(path) for path in environment.rglob("*"))
    (tmp_path / "linked").mkdir()
    folder = clone(tmp_path / "linked")
    shutil.rmtree(folder / ".venv")
    (folder / ".venv").symlink_to(environment)

    done = subprocess.run(["./run", "setup"], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)

    assert done.returncode == 2
    assert ".venv is a link to an environment that was not made for" in done.stderr
    assert sorted(str(path) for path in environment.rglob("*")) == before
