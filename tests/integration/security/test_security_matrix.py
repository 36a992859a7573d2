"""`./run security`: every way to log in, for every task of a flow; by one of them a Spark job copies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.security.ways import WAYS

PROJECT = Path(__file__).resolve().parents[3]


@pytest.mark.timeout(2_400)
@pytest.mark.usefixtures("kerberos_client", "kafka_jars")
def test_every_way_to_log_in_serves_every_task(tmp_path: Path) -> None:
    report = tmp_path / "report.json"

    done = subprocess.run(
        [sys.executable, "-m", "tools.security", "--spark", "one", "--json", str(report)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
    )

    told = json.loads(report.read_text()) if report.exists() else []
    failed = {
        way["way"]: {t: said for t, said in way["tasks"].items() if said != "ok"} for way in told if not way["ok"]
    }
    assert failed == {}
    assert [way["way"] for way in told] == [way.name for way in WAYS]
    assert done.returncode == 0, done.stderr[-2_000:]
