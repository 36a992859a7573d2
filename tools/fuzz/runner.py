"""Runs targets, each in its own process, and monitors it: a case that hangs or kills it is a failure, and skipped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

from tools.fuzz.child import PROGRESS, case, told_lines
from tools.fuzz.model import Failure, Kind, Target, TargetResult

#: Seconds in which a process must reach another case. Wall-clock time: only for endless cases.
_HANG_SECONDS = 60.0
#: Its first case comes after all imports.
_START_SECONDS = 180.0
#: A target with this many failures is reported as it is, and not fuzzed to the end.
_MOST_FAILURES = 20
_LOOK_SECONDS = 0.1
_PROJECT = Path(__file__).parents[2]


def share(targets: Sequence[Target], cases: int) -> dict[str, int]:
    """Return the number of cases of each target, by weight, rounded up."""
    whole = sum(target.weight for target in targets)
    return {target.name: ceil(cases * target.weight / whole) for target in targets}


def fuzz(target: Target, cases: int, seed: int, log: Callable[[str], None]) -> TargetResult:
    """Run all cases of one target."""
    result = TargetResult(target.name, target.what)
    began = time.monotonic()
    first = 0
    while first < cases and len(result.failures) < _MOST_FAILURES:
        first = _one_process(target, first, cases, seed, result)
        if first < cases:
            log(f"{target.name}: continuing at case {first}")
    result.seconds = time.monotonic() - began
    return result


def _one_process(target: Target, first: int, stop: int, seed: int, result: TargetResult) -> int:
    """Run cases until all are done or the process has ended; return where to continue."""
    with tempfile.TemporaryDirectory(prefix="mirror-fuzz-") as folder:
        progress, output, errors = (Path(folder) / name for name in ("progress", "output", "errors"))
        progress.write_bytes(PROGRESS.pack(-1))
        command = [sys.executable, "-m", "tools.fuzz.child", target.name, *map(str, (seed, first, stop)), str(progress)]
        with output.open("wb") as out, errors.open("wb") as err:
            # Airflow creates a home folder if it has none.
            environment = {**os.environ, "AIRFLOW_HOME": folder, "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}
            process = subprocess.Popen(
                command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=_PROJECT, env=environment
            )
            hung = _watch(process, progress)
        done = False
        for line in told_lines(output.read_text(encoding="utf-8")):
            done = done or line.get("done", False)
            if "outcomes" in line:
                result.cases += line["cases"]
                result.outcomes.update(line["outcomes"])
                result.peak_bytes = max(result.peak_bytes, line["peak"])
            if "failure" in line:
                found = line["failure"]
                data = case(target, seed, found["case"])
                kind = Kind(found["kind"])
                result.failures.append(Failure(target.name, found["case"], seed, kind, found["detail"], data))
        if done:
            return stop
        (at,) = PROGRESS.unpack(progress.read_bytes())
        why = errors.read_text(encoding="utf-8", errors="replace")[-400:]
        kind = Kind.HANG if hung else Kind.DEATH
        detail = f"no other case within {_HANG_SECONDS:g} s" if hung else f"{_ending(process.returncode)} {why}".strip()
        data = case(target, seed, at) if at >= 0 else b""
        result.failures.append(Failure(target.name, at, seed, kind, detail, data))
        result.outcomes[kind.value.upper()] += 1
        # One that never reached a case will not reach another.
        return stop if at < 0 else at + 1


def _watch(process: subprocess.Popen[bytes], progress: Path) -> bool:
    """Wait for its end; return True if it had to be killed."""
    seen, since = progress.read_bytes(), time.monotonic()
    try:
        while process.poll() is None:
            time.sleep(_LOOK_SECONDS)
            now = progress.read_bytes()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > (_HANG_SECONDS if PROGRESS.unpack(now)[0] >= 0 else _START_SECONDS):
                return True
        return False
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _ending(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
