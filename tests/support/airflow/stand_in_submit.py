"""Operators that submit Spark jobs, with a stand-in for `spark-submit`."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

#: The report of a job that copied.
DONE: Mapping[str, Any] = {
    "exit_code": 0,
    "run_id": "r",
    "records": 5,
    "bytes": 50,
    "rounds": 1,
    "idle_partitions": 0,
    "seconds": 1.5,
    "copy_seconds": 0.5,
    "partitions": [],
    "problems": [],
}
#: Notes its arguments and its environment, writes the report it was told to, ends with that report's exit code.
_PROGRAM = """#!{python}
import json, os, sys
folder = os.path.dirname(__file__)
print("a line of the job")
json.dump(sys.argv[1:], open(folder + "/arguments.json", "w"))
json.dump(dict(os.environ), open(folder + "/environment.json", "w"))
report = json.load(open(folder + "/report.json"))
path = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--report=")][0]
if len(report) > 1:
    json.dump(report, open(path, "w"))
sys.exit(report["exit_code"])
"""


class StandInSubmit:
    """What the program was given last, and what the operator pushed to XCom."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pushed: dict[str, Any] = {}

    def execute(self, operator: Any, report: Mapping[str, Any] = DONE, *, attempt: int = 1, **context: Any) -> None:
        """Execute an operator, whose job leaves a report, or none where that has an exit code alone."""
        (self._folder / "report.json").write_text(json.dumps(report))
        instance = SimpleNamespace(try_number=attempt, xcom_push=lambda key, value: self.pushed.update({key: value}))
        operator.render_template_fields({"ti": instance, **context})
        operator.execute({"ti": instance, **context})

    @property
    def has_run(self) -> bool:
        return (self._folder / "arguments.json").exists()

    @property
    def arguments(self) -> list[str]:
        return list(json.loads((self._folder / "arguments.json").read_text()))

    @property
    def environment(self) -> dict[str, str]:
        return dict(json.loads((self._folder / "environment.json").read_text()))

    def arguments_of(self, job: str) -> list[str]:
        """The words behind the file of the job."""
        words = self.arguments
        return words[next(at for at, word in enumerate(words) if word.endswith(f"spark_jobs/{job}.py")) + 1 :]


@contextmanager
def stand_in_submit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInSubmit]:
    """Put the program first on the PATH."""
    program = folder / "spark-submit"
    program.write_text(_PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    with warnings.catch_warnings():
        # The provider's hook leaves the pipe to spark-submit for the garbage collector to close.
        warnings.simplefilter("ignore", ResourceWarning)
        yield StandInSubmit(folder)
        gc.collect()
