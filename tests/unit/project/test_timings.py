"""`./run test --slowest`: how what was measured adds up."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.timings import Measured, main


def test_the_tables_add_up_what_all_workers_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Measured("tests/unit/test_a.py::test_one", 2.0, 1.0, {"broker (session)": 1.5})
    second = Measured("tests/unit/test_a.py::test_two", 3.0, 0.5, {"broker (session)": 1.0})
    for number, each in enumerate((first, second)):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(asdict(each)) + "\n")
    (tmp_path / "session-1.json").write_text(json.dumps({"seconds": 4.0, "busy": 0.5}))

    main(tmp_path)

    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines()]
    assert ["tests/unit/test_a.py", "2", "5.0", "1.5"] in lines
    assert ["broker", "(session)", "2.5"] in lines
    assert "4 s on the clock, 5 s of tests; the processors were busy for 50% of the time." in shown
