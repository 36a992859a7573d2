"""The short form of the fault tests: a few faults that need no second broker, and a target without a blemish."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import running_with

_ROOT = Path(__file__).resolve().parents[2]
#: A process, a lock and the network; `./run faults` plays the others.
_KINDS = ("killed-before-positions", "two-runs-unlocked", "acknowledgement-lost", "connections-cut")


@pytest.mark.timeout(900)
def test_after_four_faults_the_target_holds_every_record_once_and_nothing_is_left_behind(tmp_path: Path) -> None:
    file, temporary = tmp_path / "faults.json", tmp_path / "tmp"
    temporary.mkdir()

    done = subprocess.run(
        [
            *(sys.executable, "-m", "tools.faults", "--faults", str(len(_KINDS)), "--seed", "7", "--brokers", "1"),
            *("--kinds", ",".join(_KINDS), "--json", str(file)),
        ],
        cwd=_ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )

    assert done.returncode == 0, done.stderr + done.stdout
    data = json.loads(file.read_text())
    assert {strike["kind"] for strike in data["strikes"]} == set(_KINDS)
    nothing = {"missing": 0, "duplicated": 0, "out_of_order": 0, "altered": 0}
    assert data["findings"] == nothing
    assert data["complete"]["findings"] == nothing
    assert data["complete"]["input_faults"] == []
    assert data["complete"]["target_records"] == data["complete"]["source_records"] > 0
    assert list(temporary.glob("mirror-faults-*")) == []
    assert running_with(str(temporary)) == []
