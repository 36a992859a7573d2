"""A Spark cluster that gives its jobs no executor: its only worker has fewer cores than an executor needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.copy.job.report import JobReport
from mirror_lib.features.verify.job_arguments import VerifyArguments
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.spark.submit import checkout_path, find_spark_home, spark_submit, submit_settings
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import consume, create_topic, produce, records

pytestmark = pytest.mark.timeout(600)

#: Master, worker and driver in one process.
_MASTER = "local-cluster[1,1,512]"
#: A copy and a verification in one session; their arguments are in two files.
_JOBS = """
import sys
from pathlib import Path

import mirror_lib.copy.job.command
import mirror_lib.features.verify.job
from spark_jobs.entry import start
from spark_jobs.replicate import copy_with
from spark_jobs.verify import verify_with


def run(argv, open_session):
    session = open_session("no executors")
    copy, verify = (Path(path).read_text().splitlines() for path in argv)
    mirror_lib.copy.job.command.main(copy, lambda flow: copy_with(session))
    mirror_lib.features.verify.job.main(verify, lambda flow: verify_with(session))
    return 0


sys.exit(start(sys.argv[1:], run, copies=True))
"""


def test_jobs_without_executors_end_with_a_reason_and_the_next_run_copies(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(10))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"mirror.spark.executor.wait.seconds": "1"})
    flow.sync_topics()
    assert flow.run().records == 10
    produce(kafka_pair.source, topic_name, records(5, start=10))
    copied, compared = tmp_path / "copy.json", tmp_path / "verify.json"
    jobs = {
        "copy": JobArguments(config=flow.path, flow="A->B", report=copied).command_line(),
        "verify": VerifyArguments(config=flow.path, flow="A->B", mode=VerifyMode.FULL, report=compared).command_line(),
    }
    for name, words in jobs.items():
        (tmp_path / name).write_text("\n".join(words))
    (tmp_path / "jobs.py").write_text(_JOBS)
    settings = {**submit_settings(_MASTER), "spark.executor.cores": "2", "spark.executor.memory": "512m"}

    done = subprocess.run(
        [
            str(spark_submit(find_spark_home(os.environ))),
            f"--master={_MASTER}",
            *(f"--conf={key}={value}" for key, value in settings.items()),
            *(str(tmp_path / name) for name in ("jobs.py", *jobs)),
        ],
        env={**os.environ, **checkout_path(os.environ)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    refused = JobReport.read(copied)
    assert refused is not None, done.stderr[-3000:]
    assert refused.error is not None
    assert (refused.exit_code, refused.error.reason) == (1, "no-executors")
    assert "spark.executor.memory" in refused.error.action
    assert "Nothing was copied" in refused.error.action
    text = compared.read_text()
    assert '"no-executors"' in text
    assert "Nothing was compared" in text
    assert flow.ledger.lock_holder("A->B") is None
    # With executors the next run copies everything, after the mark that fences the first one off.
    assert flow.run().records == 5
    copies, originals = consume(kafka_pair.target, f"A.{topic_name}"), consume(kafka_pair.source, topic_name)
    assert [copy.value for copy in copies] == [record.value for record in originals]
