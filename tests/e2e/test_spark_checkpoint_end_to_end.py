"""A checkpoint folder of the installed Spark is translated, and the query goes on from the copy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.offsets.runs import OffsetRun, encode
from tests.support.ledger.ledgers import ready_ledger

_QUERY = Path(__file__).parents[1] / "support" / "spark" / "kafka_shaped_query.py"
_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = orders
mirror.ledger.url = sqlite:///ledger.sqlite3
"""


def query(*words: object) -> None:
    """Run the query once, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(_QUERY), *map(str, words)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def read(out: Path) -> list[int]:
    """The offsets that a query has read."""
    return sorted(json.loads(line)["offset"] for file in out.glob("*.json") for line in file.read_text().splitlines())


def test_a_query_goes_on_with_the_records_that_it_has_not_read(tmp_path: Path) -> None:
    (tmp_path / "mirror.properties").write_text(_FILE)
    runs = (OffsetRun(0, 1_000, 12), OffsetRun(16, 1_012, 10))
    row = SegmentRow(
        flow="A->B",
        topic="orders",
        partition=0,
        source_first=0,
        source_next=26,
        target_first=1_000,
        target_next=1_022,
        records=22,
        runs=encode(runs),
        run_id="r1",
    )
    with ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        ledger.append_segments([row])
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    query("orders", 5, 14, checkpoint, out)
    assert read(out) == list(range(5, 14))

    words = ["--checkpoint-folder", str(checkpoint), "--out", str(tmp_path / "moved")]
    config = ["--config", str(tmp_path / "mirror.properties"), "--flow", "A->B"]
    translated = CliRunner().invoke(app, ["translate", *config, *words])
    query("A.orders", 0, 1_022, tmp_path / "moved", tmp_path / "read-after")

    assert translated.exit_code == 0, translated.output
    # Source offset 14 is a hole: the next record is 16, which stands at 1,012.
    assert read(tmp_path / "read-after") == list(range(1_012, 1_022))
