"""Run `mirror audit` as its users do, and read what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tools.trials.model import Found
from tools.trials.scene import Copy, Scene, TrialError

_ROOT = Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, "-m", "mirror_lib.cli.main", "audit")
_SECONDS = 1_800.0


def audit(scene: Scene, copy: Copy) -> Found:
    """Audit a copy.

    Raises:
        TrialError: the command did not print a report.
    """
    where = brokers(scene) if copy.flow is None else ("--config", str(copy.flow[0]), "--flow", copy.flow[1])
    printed = run(
        *where,
        *("--topics", re.escape(scene.topic)),
        *("--wait", f"{copy.wait:.0f}", "--processes", "1", "--json"),
        *copy.options,
    )
    try:
        return Found.of(json.loads(printed.stdout))
    except (ValueError, KeyError, TypeError) as error:
        text = (printed.stderr or printed.stdout)[-2_000:]
        raise TrialError(f"mirror audit ended with {printed.returncode} and printed no report: {text}") from error


def brokers(scene: Scene) -> tuple[str, ...]:
    """Return the options that name both clusters."""
    return "--source", scene.source.bootstrap_servers, "--target", scene.target.bootstrap_servers


def run(*arguments: str, columns: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command with these arguments."""
    width = {} if columns is None else {"COLUMNS": str(columns)}
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [*_COMMAND, *arguments],
        env={**os.environ, "PYTHONPATH": path, **width},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
