"""The core without its features: a copy of the product whose folder `features` is deleted runs a flow."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.cutover_rows import HandedOverRow
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import consume, create_topic, produce, records, values

pytestmark = pytest.mark.timeout(300)

_PROJECT = Path(__file__).resolve().parents[2]
_LEASE_SECONDS = 3
_DAGS = "import sys; from mirror_lib.airflow.dags import mirror_dags; print('DAGS', *mirror_dags(sys.argv[1]))"


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """A folder with the product, but for the features."""
    folder = tmp_path / "core"
    for name in ("mirror_lib", "spark_jobs", "dags"):
        ignored = shutil.ignore_patterns("features", "transforms", "__pycache__")
        shutil.copytree(_PROJECT / name, folder / name, ignore=ignored)
    return folder


def test_given_the_core_alone_then_a_flow_is_copied_and_synced_and_nothing_asks_for_a_feature(
    core: Path, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(10))
    commit_offset(kafka_pair.source, f"{topic_name}-readers", topic_name, 4)
    settings = {
        "groups": f"{topic_name}-readers",
        "sync.group.offsets.enabled": "true",
        "checkpoints.topic.replication.factor": "1",
        "mirror.run.lease.seconds": str(_LEASE_SECONDS),
    }
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)

    environment = {**os.environ, "PYTHONPATH": str(core), "MIRROR_STATE_DIR": str(tmp_path / "state")}

    def python(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *words], cwd=core, env=environment, capture_output=True, text=True)

    def mirror(*words: str, exit_code: int = 0) -> dict[str, Any]:
        done = python("-m", "mirror_lib.cli.main", *words, "--json")
        assert done.returncode == exit_code, done.stdout[-2000:] + done.stderr[-2000:]
        return dict(json.loads(done.stdout or "{}"))

    place = ("--config", str(flow.path), "--flow", "A->B")
    assert mirror("features")["features"] == []
    run = ("run", *place, "--master", "local[1]")
    mirror(*run)
    for step in ("configs", "groups"):
        mirror(step, "apply", *place)
    mirror("verify", *place, exit_code=2)
    changed = tmp_path / "changed.properties"
    provider = "config.providers = airflow\nconfig.providers.airflow.class = mirror_lib.AirflowSecretProvider\n"
    changed.write_text(f"{flow.path.read_text()}\nA->B.mirror.transforms = t\nA->B.transforms = u\n{provider}")
    problems = mirror("plan", "--config", str(changed), *place[2:], exit_code=2)["error"]["problems"]
    assert [each["suggestion"] for each in problems].count("install batch-mirror[transforms]") == 2, problems
    (secrets,) = (each["message"] for each in problems if "AirflowSecretProvider" in each["message"])
    assert "needs the feature airflow_secrets, which is not installed; install batch-mirror with its" in secrets
    assert "forecast" not in mirror("plan", *place)

    moved = HandedOverRow(flow="A->B", topic="t", target_topic="A.t", cutover="c", since=datetime.now(UTC), by="ann")
    Cutovers(flow.ledger).hand_over([moved])
    assert (
        "a flow with topics that a cutover has moved needs the feature"
        in mirror("plan", *place, exit_code=2)["error"]["what"]
    )
    Cutovers(flow.ledger).hand_over([], take_back_from="A->B", topics=["t"])

    assert len(consume(kafka_pair.target, f"A.{topic_name}")) == 10
    assert committed_offsets(kafka_pair.target, f"{topic_name}-readers")[f"A.{topic_name}", 0] == 4
    # A run that is killed while it copies is taken over: nothing is lost, and nothing is there twice.
    written = produce(kafka_pair.source, topic_name, records(4_000, size=1_000, start=10))
    slow = tmp_path / "slow.properties"
    slow.write_text(f"{flow.path.read_text()}\nA->B.mirror.rate.limit.bytes = 100000\n")
    words = ("-m", "mirror_lib.cli.main", "run", "--config", str(slow), *place[2:], "--master", "local[1]")
    killed = subprocess.Popen([sys.executable, *words], cwd=core, env=environment)
    while len(consume(kafka_pair.target, f"A.{topic_name}")) == 10:
        assert killed.poll() is None
    # The driver has a session of its own.
    for each in (*psutil.Process(killed.pid).children(recursive=True), killed):
        each.kill()
    killed.wait()
    assert len(consume(kafka_pair.target, f"A.{topic_name}")) < 10 + len(written)
    time.sleep(_LEASE_SECONDS + 0.5)
    mirror(*run)
    assert values(consume(kafka_pair.target, f"A.{topic_name}")) == values([*records(10), *written])
    dags = python("-c", _DAGS, str(flow.path)).stdout.partition("DAGS ")[2].split()
    assert {each.partition("__")[0] for each in dags} == {"mirror"}
