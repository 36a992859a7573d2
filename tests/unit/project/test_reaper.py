"""The process above the tests: nothing that they start survives them, and it is said what would have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from mirror_lib.processes import process_facts

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS = 60
#: Starts a process with a session of its own, as brokers have one, and notes its id.
_START = """
import sys
from pathlib import Path
from mirror_lib.features.demo.background_process import start
started = start(["sleep", "600"], log=Path(sys.argv[1]) / "log")
(Path(sys.argv[1]) / "pid").write_text(str(started.pid))
"""
#: A test whose worker dies while a process that it started runs, and a second one.
_DYING_TESTS = """
import os
from pathlib import Path
from mirror_lib.features.demo.background_process import start

def test_a_worker_that_dies():
    started = start(["sleep", "600"], log=Path("log"))
    Path("pid").write_text(str(started.pid))
    os._exit(9)

def test_another():
    pass
"""


def _reaped(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "tests.support.reaper", *command],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(_PROJECT)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _runs(folder: Path) -> bool:
    facts = process_facts(int((folder / "pid").read_text()))
    return facts is not None and facts.is_alive


def test_given_a_command_that_leaves_nothing_then_its_exit_code_is_returned(tmp_path: Path) -> None:
    for code in (0, 3):
        done = _reaped(sys.executable, "-c", f"raise SystemExit({code})", folder=tmp_path)

        assert (done.returncode, done.stderr) == (code, "")


def test_given_a_worker_that_dies_then_its_test_is_named_its_processes_are_ended_and_no_test_runs_again(
    tmp_path: Path,
) -> None:
    """As https://github.com/pytest-dev/pytest-xdist/issues/1323: a new worker would begin the file again, and die."""
    for name in ("first", "second"):
        (tmp_path / f"test_{name}.py").write_text(f"def test_before():\n    pass\n{_DYING_TESTS}")

    options = ("-c", str(_PROJECT / "pyproject.toml"), "--rootdir", ".", "-p", "no:cacheprovider")
    whole_files = ("-n", "1", "--dist", "loadfile", "--no-loadscope-reorder")
    done = _reaped(sys.executable, "-m", "pytest", *options, *whole_files, ".", folder=tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "crashed while running 'test_first.py::test_a_worker_that_dies'" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "sleep 600" in done.stderr
    assert not _runs(tmp_path)


def test_given_a_signal_then_the_command_gets_it_and_nothing_is_left(tmp_path: Path) -> None:
    waiting = f"{_START}\nimport time\ntime.sleep(600)"
    environment = {**os.environ, "PYTHONPATH": str(_PROJECT)}
    command = [sys.executable, "-m", "tests.support.reaper", sys.executable, "-c", waiting, str(tmp_path)]
    reaper = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + _SECONDS
    while not (tmp_path / "pid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)

    reaper.send_signal(signal.SIGTERM)
    _, said = reaper.communicate(timeout=_SECONDS)

    assert reaper.returncode == 128 + signal.SIGTERM
    assert "sleep 600" in said
    assert not _runs(tmp_path)
