"""One Airflow for the files of this folder, with the wheel installed, and the configuration files of each of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE
from mirror_lib.spark.submit import find_spark_home
from tests.support.airflow.shared import SharedAirflow, shared_airflow
from tests.support.clusters import KafkaPair
from tests.support.cutovers import Migration, migration
from tests.support.environments import Environment, build_wheel, make_environment
from tests.support.flow_files import flow_between
from tests.support.names import unique_name

#: Drivers of this flow are killed, and each time somebody waits until its lock has expired.
_SHORT_LEASE = "mirror.run.lease.seconds = 12"
_WATCHED = (
    "U->V.mirror.schedule = on-new-records",
    "U->V.mirror.schedule.poll = 1s",
    "U->V.mirror.schedule.longest = 1d",
)
_EXISTING = (
    "primary->backup.mirror.airflow.pool = kafka_backup",
    "primary->backup.mirror.airflow.deadline.seconds = 3",
    "primary->backup.mirror.spark.connection = our_spark",
)
#: Records of the tests are years old.
_AUDITED = ("mirror.audit.schedule = 1d", "mirror.audit.since = all")
#: What docs/deployment.md tells people to write.
_DAG_FILE = """\
# The replication DAGs of our clusters.
from mirror_lib.airflow.dags import mirror_dags

globals().update(mirror_dags({config!r}))
"""
_PROJECT = Path(__file__).resolve().parents[3]

#: More flows than the Airflow has worker slots.
WAITING = ("W1", "W2", "W3", "W4")
_WAITING = (
    "mirror.airflow.deferrable = true",
    "mirror.spark.connection = warm",
)


@dataclass(frozen=True, slots=True)
class Files:
    """Configuration files, and the topics that they name; whoever needs a topic creates it."""

    folder: Path
    #: Of the flows N->S and M->S.
    one: Path
    topic: str
    marked_topic: str
    #: Of the flow C->D, with the same ledger.
    other: Path
    #: Of the flow Q->R, with the same ledger.
    quiet: Path
    quiet_topic: str
    #: Of the flow U->V, which new records start, with the same ledger.
    watched: Path
    watched_topic: str
    #: Of the flows from each of `WAITING` to X, whose copies are deferred, with the same ledger.
    waiting: Path
    waiting_topic: str
    #: Of the flow primary->backup, whose DAGs have a file of their own, with the same ledger.
    existing: Path
    existing_topic: str
    #: Of the flow E->F, which is audited and never run, and the metrics of its audits.
    audited: Path
    audited_topic: str
    audit_metrics: Path
    #: Of the flows A->B and B->A, with a ledger of their own.
    moving: Migration
    moving_topics: tuple[str, str, str]
    #: Of the Spark Connect server and the driver host that the test of `waiting` starts.
    spark_port: int
    drivers: Path

    @property
    def ledger_url(self) -> str:
        """Of the first two."""
        return f"sqlite:///{self.folder}/ledger.db"


@pytest.fixture(scope="package")
def files(kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    folder = tmp_path_factory.mktemp("one-airflow")

    def text(flow: str, topic: str, *lines: str, topics: str | None = None) -> str:
        ledger = f"mirror.ledger.url = sqlite:///{folder}/ledger.db"
        usual = ("offset.flush.interval.ms = 1000", "tasks.max = 1", ledger)
        return flow_between(kafka_pair, flow, topics or topic, topic, *usual, *lines)

    topic, marked_topic, others, quiet_topic, watched_topic, waiting_topic, existing_topic, audited_topic = (
        unique_name(name)
        for name in ("orders", "marked", "others", "quiet", "watched", "waiting", "existing", "audited")
    )
    one, other, quiet, watched, waiting, existing, audited = (
        folder / f"{name}.properties" for name in ("one", "other", "quiet", "watched", "waiting", "existing", "audited")
    )
    servers = kafka_pair.source.bootstrap_servers
    one.write_text(_with_flow(text("N->S", topic, _SHORT_LEASE), "M->S", servers, marked_topic))
    other.write_text(text("C->D", others))
    quiet.write_text(text("Q->R", quiet_topic))
    watched.write_text(text("U->V", watched_topic, *_WATCHED))
    flows = text(f"{WAITING[0]}->X", waiting_topic, *_WAITING)
    for alias in WAITING[1:]:
        flows = _with_flow(flows, f"{alias}->X", servers, waiting_topic)
    waiting.write_text(flows)
    existing.write_text(text("primary->backup", existing_topic, *_EXISTING, topics=f"{existing_topic}.*"))
    metrics = folder / "audit.prom"
    audited.write_text(text("E->F", audited_topic, *_AUDITED, f"mirror.audit.metrics = {metrics}"))
    (folder / "moving").mkdir()
    moving_topics = unique_name("moving"), unique_name("lost"), unique_name("kept")
    moving = migration(folder / "moving", kafka_pair, ",".join(moving_topics))
    yield Files(
        folder,
        *(one, topic, marked_topic, other, quiet, quiet_topic, watched, watched_topic, waiting, waiting_topic),
        *(existing, existing_topic, audited, audited_topic, metrics, moving, moving_topics),
        free_ports(1)[0],
        folder / "private" / "drivers",
    )
    moving.ledger.close()


def _with_flow(text: str, flow: str, source: str, topic: str) -> str:
    """A file with one flow more, from another alias of its source."""
    alias, _, _ = flow.partition("->")
    lines = (f"{alias}.bootstrap.servers = {source}", f"{flow}.enabled = true", f"{flow}.topics = {topic}")
    return "\n".join([text.replace("clusters = ", f"clusters = {alias}, ", 1), *lines, ""])


@dataclass(frozen=True, slots=True)
class Installed:
    """The wheel in two environments: of Airflow with its tasks, and of Spark's drivers and executors."""

    airflow: Environment
    spark: Environment


@pytest.fixture(scope="package")
def installed(files: Files) -> Installed:
    wheel = build_wheel(files.folder / "dist")
    return Installed(*(make_environment(files.folder / f"{name}-venv", wheel) for name in ("airflow", "spark")))


@pytest.fixture(scope="package")
def airflow(files: Files, installed: Installed, kafka_pair: KafkaPair) -> Iterator[SharedAirflow]:
    warm = {"conn_type": "spark_connect", "host": LOOPBACK, "port": files.spark_port}
    programs = (str(installed.airflow.python.parent), "/usr/local/bin", "/usr/bin", "/bin")
    more = {
        "AIRFLOW_CONN_WARM": json.dumps(warm),
        DRIVER_HOST_VARIABLE: str(files.drivers),
        # Nothing of this project: neither its folder nor the programs of its environment.
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": "",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(files.folder / "our-plugins"),
        "SPARK_HOME": str(find_spark_home(os.environ)),
        "PYSPARK_PYTHON": str(installed.spark.python),
        "PYSPARK_DRIVER_PYTHON": str(installed.spark.python),
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    example, audit = (
        (_PROJECT / "examples" / "dags" / f"{name}.py").read_text() for name in ("new_orders", "audit_mm2")
    )
    for ours, name in (
        ("old-1:9092,old-2:9092", kafka_pair.source.bootstrap_servers),
        ("new-1:9092,new-2:9092", kafka_pair.target.bootstrap_servers),
        ("orders.*", files.audited_topic),
        # Airflow would start a run as soon as somebody unpauses it.
        ("schedule=timedelta(hours=1)", "schedule=None"),
        ('since="2h"', 'since="2024-01-01"'),
    ):
        assert ours in audit
        audit = audit.replace(ours, name)
    dag_files = {
        "replication.py": _DAG_FILE.format(config=str(files.existing)),
        "new_orders.py": example.replace('"primary.orders"', f'"primary.{files.existing_topic}"'),
        "audit_mm2.py": audit,
    }
    watched = [files.one, files.other, files.quiet, files.watched, files.waiting, files.audited]
    watched.append(files.moving.there.path)
    python = installed.airflow.python
    with shared_airflow(files.folder, watched, more, dag_files=dag_files, python=python) as running:
        yield running
