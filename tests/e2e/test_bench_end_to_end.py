"""The comparison itself, with few records: every copier copies everything, and nothing is left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(600)
def test_a_small_comparison_measures_every_copier_and_leaves_nothing(tmp_path: Path) -> None:
    file, temporary = tmp_path / "bench.json", tmp_path / "tmp"
    temporary.mkdir()

    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench", "--workloads", "200b-five", "--scale", "0.02", "--warm-up", "1"),
            *("--copiers", "mirror,mm2-tuned,client-loop,limit", "--json", str(file)),
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
    assert {(each["copier"], each["records"]) for each in data["measurements"]} == {
        ("mm2-tuned", 10_000),
        ("client-loop", 10_000),
        ("mirror", 10_000),
    }
    for each in data["measurements"]:
        assert each["comparison"]["target_records"] == 10_000
        assert each["comparison"]["differing"] == 0
        assert each["seconds"] > 0
    assert len(data["idle_seconds"]) == 1
    assert {(each["half"], each["records"]) for each in data["limit_runs"]} == {
        ("fetching", 10_000),
        ("producing", 10_000),
    }
    assert data["bounds"][0]["seconds"] > 0
    share = data["ratios"][0]["share_of_bound"]
    assert 0 < share["low"] <= share["median"] <= share["high"]
    assert "200b-five" in done.stdout
    assert list(temporary.glob("mirror-bench-*")) == []
    assert _running(str(temporary)) == []


def _running(text: str) -> list[str]:
    """Command lines of processes that name this text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text in line:
                found.append(line)
    return found
