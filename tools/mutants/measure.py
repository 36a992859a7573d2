"""Run the tests of a checkout under coverage: which test executes which line, and how many branches of each package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.mutants.contexts import SECONDS

_SETTINGS = Path(__file__).with_name("coverage.ini")
_DATA = "MUTANTS_DATA"
COMBINED = "combined"
#: Tests that run under coverage take longer.
_TIMEOUT_SECONDS = 900


class MeasureError(Exception):
    """The tests fail without any fault; the message is one line for the terminal."""


def measure(checkout: Path, data: Path, tests: Sequence[str], options: Sequence[str]) -> None:
    """Run tests and leave in `data` what `Seen.read` and `branches` read; nothing to do if it is there.

    Raises:
        MeasureError: a test fails.
    """
    if (data / COMBINED).is_file():
        return
    data.mkdir(parents=True, exist_ok=True)
    for old in data.iterdir():
        old.unlink()
    environment = {
        **os.environ,
        "CI": "true",
        "PYTHONPATH": os.pathsep.join((str(checkout), str(_SETTINGS.parent.parent))),
        # What coverage's start-up hook looks for, in each process of the run.
        "COVERAGE_PROCESS_START": str(_SETTINGS),
        _DATA: str(data / "data"),
        SECONDS: str(data),
    }
    # The plugin is this checkout's own, whatever the measured one holds.
    run = (sys.executable, "-m", "tests.support.reaper", sys.executable, "-m", "pytest", *tests, "-q")
    plugin = ("-p", "mutants.contexts", "-p", "no:cacheprovider", "-o", f"timeout={_TIMEOUT_SECONDS}")
    if code := _run((*run, *plugin, *options), checkout, environment):
        raise MeasureError(f"tests fail without any fault (exit code {code}): see above")
    _combine(checkout, data)


def _run(command: Sequence[str], checkout: Path, environment: Mapping[str, str]) -> int:
    process = subprocess.Popen(command, cwd=checkout, env=environment)
    try:
        return process.wait()
    except BaseException:
        # The reaper ends the tests, and what they have started; killed, it could not.
        process.terminate()
        process.wait()
        raise


def _combine(checkout: Path, data: Path) -> None:
    run = (sys.executable, "-m", "coverage", "combine", "--quiet", f"--rcfile={_SETTINGS}")
    target = f"--data-file={data / COMBINED}"
    parts = map(str, data.glob("data.*"))
    subprocess.run((*run, target, *parts), cwd=checkout, check=True, env={**os.environ, _DATA: str(data / "data")})


def branches(checkout: Path, *data: Path) -> dict[str, tuple[int, int]]:
    """Return executed and existing branches of each package, of several runs together."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = (f"--rcfile={_SETTINGS}", f"--data-file={Path(folder) / COMBINED}")
        environment = {**os.environ, _DATA: str(Path(folder) / COMBINED)}
        parts = [str(each / COMBINED) for each in data]
        for command in (
            ("combine", "--quiet", "--keep", *options, *parts),
            ("json", *options, "-q", "-o", str(report)),
        ):
            subprocess.run((sys.executable, "-m", "coverage", *command), cwd=checkout, check=True, env=environment)
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    counted: dict[str, tuple[int, int]] = {}
    for path, measured in sorted(files.items()):
        package = "/".join(Path(path).parts[:2])
        executed, existing = counted.get(package, (0, 0))
        summary = measured["summary"]
        counted[package] = (executed + summary["covered_branches"], existing + summary["num_branches"])
    return counted
