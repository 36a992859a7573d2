"""The comparison itself, with few records: both copy everything, and nothing is left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import running_with

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(600)
def test_a_small_comparison_measures_both_copiers_and_leaves_nothing(tmp_path: Path) -> None:
    file, temporary = tmp_path / "bench.json", tmp_path / "tmp"
    temporary.mkdir()

    done = subprocess.run(
        [
            *(sys.executable, "-m", "tools.bench", "--workloads", "200b-five", "--scale", "0.02", "--warm-up", "1"),
            *("--copiers", "mirror,mm2-tuned", "--json", str(file)),
        ],
        cwd=_ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    data = json.loads(file.read_text())
    copies = {(each["copier"], each["records"]) for each in data["measurements"]}
    assert copies == {("mm2-tuned", 10_000), ("mirror", 10_000)}
    for each in data["measurements"]:
        assert each["comparison"]["target_records"] == 10_000
        assert each["comparison"]["differing"] == 0
        assert each["seconds"] > 0
    assert len(data["idle_seconds"]) == 1
    assert "200b-five" in done.stdout
    assert list(temporary.glob("mirror-bench-*")) == []
    assert running_with(str(temporary)) == []
