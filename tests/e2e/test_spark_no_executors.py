"""A Spark cluster that gives a job no executor."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from mirror_lib.relay.job.arguments import JobArguments
from testbed.spark_cluster import SparkCluster
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.submitted_jobs import ClusterOfJobs

pytestmark = pytest.mark.timeout(600)


def test_a_cluster_without_workers_ends_the_run_and_one_copies(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(10))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"mirror.spark.executor.wait.seconds": "3"})
    flow.sync_topics()

    # Executors would unpack it.
    archive = tmp_path / "empty.tar.gz"
    tarfile.open(archive, "w:gz").close()
    with SparkCluster(tmp_path / "cluster", workers=0) as spark:
        job = ClusterOfJobs(spark, archive).submit(tmp_path / "run", JobArguments(config=flow.path, flow="A->B"))
        refused = job.wait()

    assert refused["exit_code"] == 1
    assert refused["error"]["reason"] == "no-executors"
    assert "spark.executor.memory" in refused["error"]["action"]
    assert flow.ledger.lock_holder("A->B") is None
    # With executors the next run copies everything, after the mark that fences the first one off.
    assert flow.run().records == 10
    copies, originals = consume(kafka_pair.target, f"A.{topic_name}"), consume(kafka_pair.source, topic_name)
    assert [copy.value for copy in copies] == [record.value for record in originals]
