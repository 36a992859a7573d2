"""What is read from a standalone cluster's master, and how a cluster is addressed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_lib.errors import ConfigurationError
from testbed.spark_cluster import MasterStatus, SparkCluster


def test_only_workers_that_are_alive_count() -> None:
    # As Spark 4.2 answers at `/json/`, shortened.
    workers = [
        {"id": f"worker-{used}", "cores": 2, "coresused": used, "memory": 1024, "state": state}
        for used, state in ((2, "ALIVE"), (1, "ALIVE"), (0, "DEAD"))
    ]
    application = {"id": "app-1", "name": "mirror A->B", "state": "RUNNING"}

    status = MasterStatus.of({"url": "spark://h:7077", "workers": workers, "activeapps": [application]})

    assert status == MasterStatus(url="spark://h:7077", workers=2, cores=4, cores_used=3, applications=("app-1",))


def test_a_cluster_that_was_not_started_has_no_status_and_a_missing_spark_starts_nothing(tmp_path: Path) -> None:
    cluster = SparkCluster(tmp_path, environment={**os.environ, "SPARK_HOME": str(tmp_path / "nowhere")})

    assert (cluster.status(), cluster.executors()) == (None, ())
    with pytest.raises(ConfigurationError, match="SPARK_HOME"):
        cluster.start()
    assert not list(tmp_path.glob("*.pid"))
