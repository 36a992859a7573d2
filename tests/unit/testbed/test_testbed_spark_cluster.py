"""What is read from a standalone cluster's master, and how a cluster is addressed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_lib.errors import ConfigurationError
from testbed.spark_cluster import MasterStatus, SparkCluster

#: As Spark 4.2 answers at `/json/`, shortened.
_ANSWER = {
    "url": "spark://127.0.0.1:7077",
    "workers": [
        {"id": "worker-1", "cores": 2, "coresused": 2, "memory": 1024, "state": "ALIVE"},
        {"id": "worker-2", "cores": 2, "coresused": 1, "memory": 1024, "state": "ALIVE"},
        {"id": "worker-3", "cores": 8, "coresused": 0, "memory": 1024, "state": "DEAD"},
    ],
    "activeapps": [{"id": "app-20260101000000-0000", "name": "mirror A->B", "state": "RUNNING"}],
    "completedapps": [],
}


def test_only_workers_that_are_alive_count() -> None:
    status = MasterStatus.of(_ANSWER)

    assert status == MasterStatus(
        url="spark://127.0.0.1:7077", workers=2, cores=4, cores_used=3, applications=("app-20260101000000-0000",)
    )


def test_a_cluster_that_was_not_started_has_no_status_and_no_executors(tmp_path: Path) -> None:
    cluster = SparkCluster(tmp_path)

    assert cluster.status() is None
    assert cluster.executors() == ()


def test_clusters_do_not_share_ports(tmp_path: Path) -> None:
    first, second = SparkCluster(tmp_path / "first"), SparkCluster(tmp_path / "second")

    assert len({first.master_url, second.master_url}) == 2
    assert len({first.web_url, second.web_url}) == 2


def test_a_spark_that_is_not_there_is_said_before_anything_is_started(tmp_path: Path) -> None:
    cluster = SparkCluster(tmp_path, environment={**os.environ, "SPARK_HOME": str(tmp_path / "nowhere")})

    with pytest.raises(ConfigurationError, match="SPARK_HOME"):
        cluster.start()

    assert not list(tmp_path.glob("*.pid"))
