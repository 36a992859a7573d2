"""What `mirror run` shows of a job that left no report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_lib.cli.output import ConsoleOutput
from mirror_lib.cli.run.outcome import read_report
from mirror_lib.errors import SparkJobError

_FRAMES = [f"\tat org.apache.spark.Some{number}.call(Some.scala:{number})" for number in range(60)]
_SECTION = [f"py4j.Gateway.invoke{number}(Gateway.java:238)" for number in range(30)]
_LOG = [
    "26/11/28 00:29:32 ERROR StandaloneSchedulerBackend: Reason: All masters are unresponsive! Giving up.",
    *(f"line {number}" for number in range(20)),
    "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
    *_FRAMES,
    *_SECTION,
    "(No active SparkContext.)",
    *_FRAMES,
]


def test_the_cause_is_shown_and_no_stack_frame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files: Any = SimpleNamespace(report=tmp_path / "none.json", log=tmp_path / "run.log")
    files.log.write_text("\n".join(_LOG))

    with pytest.raises(SparkJobError) as caught:
        read_report(files, 1)
    ConsoleOutput().error(caught.value)

    shown = capsys.readouterr().err
    assert "\n26/11/28 00:29:32 ERROR StandaloneSchedulerBackend: Reason: All masters are unresponsive!" in shown
    assert "stopped SparkContext" in shown
    assert "(No active SparkContext.)" in shown
    for hidden in ("Some.scala", "Gateway.java", "\\n"):
        assert hidden not in shown
