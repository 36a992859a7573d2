"""The verification as a Spark job: tasks compare, the driver keeps what they found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mirror_lib.verify.job_arguments import VerifyArguments
from mirror_lib.verify.model import VerifyMode
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import create_topic, produce, records
from tests.support.verifying import tamper

_PROJECT = Path(__file__).parents[2]


def _run(arguments: VerifyArguments) -> subprocess.CompletedProcess[str]:
    paths = filter(None, (str(_PROJECT), os.environ.get("PYTHONPATH")))
    return subprocess.run(
        [sys.executable, "-m", "spark_jobs.verify", *arguments.command_line()],
        capture_output=True,
        text=True,
        check=False,
        cwd=_PROJECT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)},
    )


def test_spark_tasks_find_what_differs(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    other = f"{topic_name}-untouched"
    for name in (topic_name, other):
        create_topic(kafka_pair.source, name)
        produce(kafka_pair.source, name, records(300))
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{topic_name}, {other}")
    flow.run()
    tamper(kafka_pair, f"A.{topic_name}", lambda copy: copy[:100] + copy[101:])
    arguments = VerifyArguments(
        config=flow.path,
        flow="A->B",
        verification_id="by-spark",
        mode=VerifyMode.FULL,
        tasks=2,
        report=tmp_path / "report.json",
        html=tmp_path / "report.html",
    )

    done = _run(arguments)

    assert done.returncode == 3, done.stderr[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert [each["verdict"] for each in report["partitions"]] == ["different", "equal"]
    (difference,) = report["partitions"][0]["differences"]
    assert (difference["kind"], difference["source_offset"]) == ("missing", 100)
    assert [row.verdict for row in flow.ledger.verification("by-spark")] == ["different", "equal"]
    assert "missing" in (tmp_path / "report.html").read_text()
