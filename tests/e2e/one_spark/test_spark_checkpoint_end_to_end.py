"""A checkpoint folder of the installed Spark is translated, and the query goes on from the copy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.offsets.runs import OffsetRun, encode
from tests.support.ledger.ledgers import ready_ledger
from tests.support.spark.kafka_shaped_query import read_new

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = orders
mirror.ledger.url = sqlite:///ledger.sqlite3
"""


def read(out: Path) -> list[int]:
    """The offsets that a query has read."""
    return sorted(json.loads(line)["offset"] for file in out.glob("*.json") for line in file.read_text().splitlines())


def test_a_query_goes_on_with_the_records_that_it_has_not_read(spark: SparkSession, tmp_path: Path) -> None:
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
    read_new(spark, "orders", range(5, 14), checkpoint=checkpoint, out=out)
    assert read(out) == list(range(5, 14))

    words = ["--checkpoint-folder", str(checkpoint), "--out", str(tmp_path / "moved")]
    config = ["--config", str(tmp_path / "mirror.properties"), "--flow", "A->B"]
    translated = CliRunner().invoke(app, ["translate", *config, *words])
    read_new(spark, "A.orders", range(1_022), checkpoint=tmp_path / "moved", out=tmp_path / "read-after")

    assert translated.exit_code == 0, translated.output
    # Source offset 14 is a hole: the next record is 16, which stands at 1,012.
    assert read(tmp_path / "read-after") == list(range(1_012, 1_022))
