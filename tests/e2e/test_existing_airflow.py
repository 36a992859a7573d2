"""The wheel in an Airflow that somebody has already: its own home and DAG folder, and Spark in another environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from mirror_lib.airflow.flow.deadline import DEADLINE_MISSED
from mirror_lib.config.loader import load
from mirror_lib.dev.airflow import airflow_settings
from mirror_lib.dev.airflow_api import DagRunStatus
from mirror_lib.dev.ports import LOOPBACK, free_ports, is_free
from mirror_lib.ledger.location import open_ledger
from tests.support.airflow.home import migrate
from tests.support.airflow.parts import SELDOM_PARSED, Parts, RunningAirflow
from tests.support.class_archives import jvm_options
from tests.support.clusters import KafkaPair
from tests.support.environments import Environment, build_wheel, make_environment
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.names import unique_name

pytestmark = pytest.mark.timeout(900)

_PROJECT = Path(__file__).resolve().parents[2]
DAG_ID, CONSUMER = "mirror__primary__backup", "new_orders"
RECORDS = 500
_CONFIG = """\
clusters = primary, backup
primary.bootstrap.servers = {source}
backup.bootstrap.servers = {target}
primary->backup.enabled = true
primary->backup.topics = {topic}, {quiet}
primary->backup.mirror.airflow.pool = kafka_backup
primary->backup.mirror.airflow.deadline.seconds = 3
primary->backup.mirror.spark.connection = our_spark
backup->primary.enabled = false
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.topic = mm2-offsets.{topic}.internal
tasks.max = 1
mirror.ledger.url = sqlite:///{folder}/ledger.db
"""
#: What docs/deployment.md tells people to write.
_DAG_FILE = """\
# The replication DAGs of our clusters.
from mirror_lib.airflow.dags import mirror_dags

globals().update(mirror_dags({config!r}))
"""
_LITTLE = "192m"


@dataclass(frozen=True, slots=True)
class Existing:
    """An Airflow with our wheel in it, and the Spark that it uses."""

    airflow: RunningAirflow
    airflow_environment: Environment
    spark_environment: Environment
    config: Path
    topic: str


@pytest.fixture(scope="module")
def topic() -> str:
    return unique_name("orders")


@pytest.fixture(scope="module")
def existing(kafka_pair: KafkaPair, topic: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Existing]:
    folder = tmp_path_factory.mktemp("existing")
    wheel = build_wheel(folder / "dist")
    airflow_environment = make_environment(folder / "airflow-venv", wheel)
    spark_environment = make_environment(folder / "spark-venv", wheel)
    quiet = f"{topic}-quiet"
    for name in (topic, quiet):
        create_topic(kafka_pair.source, name, partitions=2)
    config = folder / "mirror.properties"
    config.write_text(
        _CONFIG.format(
            source=kafka_pair.source.bootstrap_servers,
            target=kafka_pair.target.bootstrap_servers,
            topic=topic,
            quiet=quiet,
            folder=folder,
        )
    )
    dags = folder / "our-dags"
    dags.mkdir()
    (dags / "replication.py").write_text(_DAG_FILE.format(config=str(config)))
    example = (_PROJECT / "examples" / "dags" / "new_orders.py").read_text()
    (dags / "new_orders.py").write_text(example.replace('"primary.orders"', f'"primary.{topic}"'))
    with Parts(folder) as parts:
        spark_port = _start_spark(parts, folder)
        airflow = _start_airflow(parts, folder, dags, airflow_environment, spark_environment)
        airflow.wait_ready([DAG_ID, CONSUMER])
        airflow.api.add_connection("our_spark", "spark", f"spark://{LOOPBACK}", spark_port)
        airflow.api.add_pool("kafka_backup", 1)
        yield Existing(airflow, airflow_environment, spark_environment, config, topic)


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _start_spark(parts: Parts, folder: Path) -> int:
    """The Spark that is there already: a standalone master with a worker, which know nothing of this project."""
    port, pages, worker_pages = free_ports(3)
    environment = {
        **_plain_environment(_spark_home() / "bin"),
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": _LITTLE,
        "SPARK_WORKER_DIR": str(folder / "spark"),
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    deploy = "org.apache.spark.deploy"
    master = ["spark-class", f"{deploy}.master.Master", "--host", LOOPBACK, "--port", str(port)]
    parts.start("spark-master", [*master, "--webui-port", str(pages)], environment)
    parts.wait(lambda: not is_free(port), "Spark's master", 60)
    worker = ["spark-class", f"{deploy}.worker.Worker", "--cores", "1", "--memory", "1g", "--host", LOOPBACK]
    parts.start(
        "spark-worker",
        [*worker, "--webui-port", str(worker_pages), f"spark://{LOOPBACK}:{port}"],
        environment,
    )
    return port


def _start_airflow(
    parts: Parts, folder: Path, dags: Path, airflow_environment: Environment, spark_environment: Environment
) -> RunningAirflow:
    port, task_logs, trigger_logs = free_ports(3)
    settings = airflow_settings(folder / "airflow", _PROJECT, port)
    del settings["AIRFLOW_CONN_SPARK_DEFAULT"]
    environment = {
        **_plain_environment(airflow_environment.folder / "bin"),
        **settings,
        **SELDOM_PARSED,
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder / "our-plugins"),
        "MIRROR_CONFIG": str(folder / "mirror.properties"),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(task_logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
        # Spark's side is another environment than Airflow's.
        "SPARK_HOME": str(_spark_home()),
        "PYSPARK_PYTHON": str(spark_environment.python),
        "PYSPARK_DRIVER_PYTHON": str(spark_environment.python),
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    airflow = [str(airflow_environment.python), "-m", "airflow"]
    migrate(Path(environment["AIRFLOW_HOME"]))
    for name in ("api-server", "scheduler", "dag-processor", "triggerer"):
        parts.start(name, [*airflow, name], environment)
    return RunningAirflow(parts, f"http://{LOOPBACK}:{port}")


def _plain_environment(programs: Path) -> dict[str, str]:
    """Nothing of this project: neither its folder nor the programs of its environment."""
    kept = ("HOME", "LANG", "TMPDIR", "JAVA_HOME")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        # How fast a JVM starts is no matter of this project.
        **jvm_options({}),
        "PATH": os.pathsep.join([str(programs), "/usr/local/bin", "/usr/bin", "/bin"]),
        "NO_PROXY": f"{LOOPBACK},localhost",
        "no_proxy": f"{LOOPBACK},localhost",
    }


@dataclass(frozen=True, slots=True)
class Story:
    """What three runs left, in this order: with new records, with a choice that cannot work, without new records."""

    copying: DagRunStatus
    copied: int
    announced: object
    #: The ids of runs of the flow's DAG whose deadline was missed, and of all when that was noted.
    missed_deadlines: Sequence[str]
    runs_by_then: Sequence[str]
    #: Run id of the DAG that waits for the topic -> what its task returned.
    consumer_runs: Mapping[str, object]
    impossible: DagRunStatus
    quiet: DagRunStatus
    consumer_runs_at_last: int
    #: Command lines of Python in either environment.
    of_spark: Sequence[str]
    of_airflow: Sequence[str]


@pytest.fixture(scope="module")
def story(existing: Existing, kafka_pair: KafkaPair) -> Story:
    """Everything in one go: starting Airflow and Spark costs more than all that is tested."""
    airflow, api = existing.airflow, existing.airflow.api
    api.unpause(CONSUMER)
    produce(kafka_pair.source, existing.topic, records(RECORDS, size=200))
    copying = airflow.run(DAG_ID)
    copied = len(consume(kafka_pair.target, f"primary.{existing.topic}"))
    airflow.parts.wait(lambda: list(api.runs(CONSUMER).values()) == ["success"], "the consumer's run", 120)
    airflow.parts.wait(lambda: bool(_missed_deadlines(existing)), "the note of the missed deadline", 60)
    missed_deadlines, runs_by_then = _missed_deadlines(existing), list(api.runs(DAG_ID))
    consumer_runs = {run_id: api.return_value(CONSUMER, run_id, "read") for run_id in api.runs(CONSUMER)}
    impossible = airflow.run(DAG_ID, {"topics": ["("]})
    quiet = airflow.run(DAG_ID, {"steps": ["announce_new_records"]})
    return Story(
        copying,
        copied,
        api.return_value(DAG_ID, copying.run_id, "announce_new_records"),
        missed_deadlines,
        runs_by_then,
        consumer_runs,
        impossible,
        quiet,
        len(api.runs(CONSUMER)),
        existing.spark_environment.started(),
        existing.airflow_environment.started(),
    )


def _missed_deadlines(existing: Existing) -> list[str]:
    with open_ledger(load(existing.config)) as ledger:
        return [each.subject for each in ledger.audits.newest("primary->backup") if each.action == DEADLINE_MISSED]


def test_a_dag_file_of_a_few_lines_makes_the_dags_from_the_installed_wheel(existing: Existing) -> None:
    assert existing.airflow.api.import_errors() == {}
    for dag_id in (DAG_ID, "mirror_verify__primary__backup", "mirror_backfill__primary__backup"):
        assert existing.airflow.api.has_dag(dag_id)
    assert (existing.airflow_environment.packages / "mirror_lib").is_dir()


def test_the_page_comes_by_the_wheels_entry_point_with_all_its_files(existing: Existing) -> None:
    assert "replication" in existing.airflow.api.plugins()
    for path in ("", "static/page.css", "static/main.js", "static/icon.svg"):
        response = httpx.get(f"{existing.airflow.url}/replication/{path}", timeout=60, trust_env=False)
        assert response.status_code == 200, path


def test_a_run_copies_with_the_connection_and_the_pool_that_airflow_holds(story: Story) -> None:
    assert story.copying.failed_tasks == ()
    assert story.copying.state == "success"
    assert story.copied == RECORDS
    assert story.announced == {"topics": 1, "records": RECORDS}


def test_the_driver_and_the_executors_used_sparks_environment(story: Story) -> None:
    assert any("replicate.py" in line for line in story.of_spark)
    assert any("daemon" in line for line in story.of_spark)
    assert not [line for line in story.of_airflow if line.startswith("replicate.py") or "daemon" in line]


def test_a_dag_that_waits_for_the_topic_is_triggered_once_and_told_what_came(story: Story) -> None:
    assert list(story.consumer_runs.values()) == [RECORDS]


def test_a_run_that_takes_longer_than_its_deadline_is_noted_in_the_ledger(story: Story) -> None:
    assert story.missed_deadlines == story.runs_by_then == [story.copying.run_id]


def test_a_choice_that_cannot_work_fails_the_run_without_a_second_try(story: Story) -> None:
    status = story.impossible

    assert status.state == "failed"
    assert (status.tasks["preflight"], status.tries["preflight"]) == ("failed", 1)
    assert status.tasks["replicate"] == "upstream_failed"


def test_a_run_without_new_records_triggers_nobody(story: Story) -> None:
    assert story.quiet.state == "success"
    skipped = {task for task, state in story.quiet.tasks.items() if state == "skipped"}
    assert skipped >= {"sync_topics", "translate_offsets", "announce_new_records"}
    assert story.consumer_runs_at_last == 1
