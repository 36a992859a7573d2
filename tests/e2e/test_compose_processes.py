"""What `docker compose up` would run, run as processes: the same commands and settings, on one machine.

Names of containers become 127.0.0.1, ports and paths those of this test; brokers, Postgres and the metrics' servers are
not started by the file's commands, for their images are not ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import sqlalchemy

from mirror_lib.features.demo.airflow_api import DagRunStatus
from mirror_lib.features.demo.ports import LOOPBACK, free_ports, is_free
from mirror_lib.spark.submit import find_spark_home
from tests.support.airflow.parts import SELDOM_PARSED, Parts, RunningAirflow
from tests.support.class_archives import jvm_options
from tests.support.clusters import KafkaPair
from tests.support.compose import ComposeFile, Service, new_secrets
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.ledger.postgres import postgres_server
from tests.support.names import unique_name

pytestmark = pytest.mark.timeout(900)

_PROJECT = Path(__file__).resolve().parents[2]
DAG_ID = "mirror__A__B"
RECORDS = 300
AIRFLOW_PARTS = ("airflow-apiserver", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")


@dataclass(frozen=True, slots=True)
class Composed:
    """Everything of the file that is ours, running."""

    airflow: RunningAirflow
    compose: ComposeFile
    environment: dict[str, str]
    ledger_url: str
    topic: str
    token: str


@pytest.fixture(scope="module")
def composed(kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    folder = tmp_path_factory.mktemp("compose")
    topic = unique_name("sales")
    create_topic(kafka_pair.source, topic, partitions=2)
    produce(kafka_pair.source, topic, records(RECORDS, size=200))
    generated, secrets = new_secrets(folder / "project")
    with postgres_server() as url, Parts(folder) as parts:
        server = urlsplit(url)
        _make_databases(url, str(server.username))
        api, spark, health, worker_pages, task_logs, trigger_logs = free_ports(6)
        here = {
            "@postgres/": f"@{LOOPBACK}:{server.port}/",
            "airflow-apiserver:8080": f"{LOOPBACK}:{api}",
            "localhost:8080": f"{LOOPBACK}:{api}",
            "localhost:8974": f"{LOOPBACK}:{health}",
            "spark-master": LOOPBACK,
            "7077": str(spark),
            "8081": str(free_ports(1)[0]),
            "/etc/mirror/mirror.properties": str(_flow_file(folder, kafka_pair, topic)),
            "/run/secrets/mirror-metrics-token": str(secrets / "metrics-token"),
            "/opt/mirror/spark-conf": str(secrets),
            "/opt/spark-work": str(folder / "spark"),
            "/opt/airflow": str(folder / "airflow"),
            "/opt/mirror/dags": str(_PROJECT / "dags"),
            "/opt/mirror/venv/bin/python": sys.executable,
            "/opt/mirror/venv/lib/python3.12/site-packages/pyspark": str(find_spark_home(os.environ)),
        }
        variables = {
            **generated,
            "POSTGRES_USER": str(server.username),
            "AIRFLOW_UID": str(os.getuid()),
            "SPARK_WORKER_CORES": "1",
            "SPARK_WORKER_MEMORY": "1g",
        }
        compose = ComposeFile.read(variables, here)
        # What containers have and processes of one machine have not: addresses and folders of their own.
        own = {
            **SELDOM_PARSED,
            "AIRFLOW__API__HOST": LOOPBACK,
            "AIRFLOW__API__PORT": str(api),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__CORE__PARALLELISM": "2",
            # In the image, the installed package brings the plugin.
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(_PROJECT / "plugins"),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(health),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(task_logs),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_WORKER_WEBUI_PORT": str(worker_pages),
        }
        environment = {**_plain_environment(), **own}
        for name in ("state", "logs"):
            (folder / "airflow" / name).mkdir(parents=True)
        _start(parts, "airflow-init", compose.service("airflow-init"), environment)
        parts.wait_end("airflow-init", 180)
        _start(parts, "spark-master", compose.service("spark-master"), environment)
        parts.wait(lambda: not is_free(spark), "Spark's master", 60)
        _start(parts, "spark-worker", compose.service("spark-worker"), environment)
        for name in AIRFLOW_PARTS:
            _start(parts, name, compose.service(name), environment)
        airflow = RunningAirflow(parts, f"http://{LOOPBACK}:{api}", lambda: _password(folder))
        airflow.wait_ready([DAG_ID])
        ledger = compose.service("airflow-scheduler").environment["MIRROR_LEDGER_URL"]
        yield Composed(airflow, compose, environment, ledger, topic, (secrets / "metrics-token").read_text())


def _start(parts: Parts, name: str, service: Service, environment: dict[str, str]) -> None:
    parts.start(name, service.command, {**service.environment, **environment})


def _make_databases(url: str, user: str) -> None:
    """What the image of Postgres does: the database that it is told, and then the script of the file's folder."""
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("CREATE DATABASE airflow"))
    engine.dispose()
    server = urlsplit(url)
    subprocess.run(
        ["sh", str(_PROJECT / "deploy" / "postgres" / "ledger.sh")],
        check=True,
        env={
            "PATH": os.environ["PATH"],
            "PGHOST": LOOPBACK,
            "PGPORT": str(server.port),
            "POSTGRES_USER": user,
            "LEDGER_DATABASE": "mirror",
        },
    )


def _flow_file(folder: Path, pair: KafkaPair, topic: str) -> Path:
    """The file of the containers, between the brokers of the tests, which other tests use too."""
    text = (_PROJECT / "deploy" / "mirror.properties").read_text()
    assert "kafka-a:9092" in text
    text = text.replace("kafka-a:9092", pair.source.bootstrap_servers)
    text = text.replace("kafka-b:9092", pair.target.bootstrap_servers)
    text = text.replace("A->B.topics = .*", f"A->B.topics = {topic}")
    text = text.replace("A->B.mirror.schedule = 5m\n", "")
    path = folder / "mirror.properties"
    # Every flow of other tests between these brokers would take heartbeats along.
    own = f"offset.storage.topic = mm2-offsets.{topic}.internal\nemit.heartbeats.enabled = false\n"
    path.write_text(f"{text}\n{own}")
    return path


def _plain_environment() -> dict[str, str]:
    kept = ("HOME", "LANG", "TMPDIR", "JAVA_HOME")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        # How fast a JVM starts is no matter of this project.
        **jvm_options({}),
        # In the image, the environment's programs come first on the path, too.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "NO_PROXY": f"{LOOPBACK},localhost",
        "no_proxy": f"{LOOPBACK},localhost",
    }


def _password(folder: Path) -> str | None:
    """As docs/deployment.md has people read it."""
    passwords = json.loads((folder / "airflow" / "state" / "passwords.json").read_text())
    return passwords.get("admin")


@pytest.fixture(scope="module")
def run(composed: Composed) -> DagRunStatus:
    """The one run of the flow."""
    return composed.airflow.run(DAG_ID)


def test_all_parts_come_up_and_pass_their_health_checks(composed: Composed) -> None:
    composed.airflow.parts.check()
    for name in ("airflow-apiserver", "airflow-scheduler"):
        check = composed.compose.service(name).health_check
        assert check[0] == "curl"
        done = subprocess.run(check, env=composed.environment, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr


def test_a_run_that_is_triggered_by_rest_copies_on_the_standalone_spark(
    composed: Composed, run: DagRunStatus, kafka_pair: KafkaPair
) -> None:
    assert composed.airflow.api.import_errors() == {}
    assert run.failed_tasks == ()
    assert run.state == "success"
    assert len(consume(kafka_pair.target, f"A.{composed.topic}")) == RECORDS
    assert "mirror A->B" in composed.airflow.parts.log("spark-master", 200)


@pytest.mark.usefixtures("run")
def test_the_run_is_in_the_ledger_of_postgres(composed: Composed) -> None:
    engine = sqlalchemy.create_engine(composed.ledger_url)
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text("SELECT flow, state FROM run")).all()
    engine.dispose()

    assert [tuple(row) for row in found] == [("A->B", "succeeded")]


@pytest.mark.usefixtures("run")
def test_prometheus_reads_the_metrics_with_its_token_and_nobody_without_one(composed: Composed) -> None:
    url = f"{composed.airflow.url}/replication/metrics"

    shown = httpx.get(url, headers={"Authorization": f"Bearer {composed.token}"}, timeout=60, trust_env=False)
    refused = httpx.get(url, timeout=60, trust_env=False)

    assert shown.status_code == 200
    assert 'flow="A->B"' in shown.text
    assert refused.status_code == 401
