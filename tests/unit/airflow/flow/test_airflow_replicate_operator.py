import gc
import json
import os
import sys
import warnings
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks import spark_submit

from mirror_lib.airflow.compatibility import AirflowSkipException
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY, ReplicateOperator
from mirror_lib.airflow.spark import submission
from mirror_lib.airflow.spark.outcome import ReplicationRunError
from mirror_lib.errors import AnotherRunError, ConfigurationError, ReplicationError, RunLockedError, Where
from mirror_lib.observe.airflow_runs import trigger_text
from mirror_lib.relay.job.arguments import JobArguments
from mirror_lib.spark.settings import SPARK_SETTINGS, TRANSFORMING_JVM

NO_CHOICE = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}

#: Stands for Spark: notes its arguments, writes the report it was told to, ends with that report's exit code.
FAKE = """#!{python}
import json, os, sys
folder = os.path.dirname(__file__)
print("a line of the job")
json.dump(sys.argv[1:], open(folder + "/arguments.json", "w"))
json.dump(dict(os.environ), open(folder + "/environment.json", "w"))
report = json.load(open(folder + "/answer.json"))
path = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--report=")][0]
if "partitions" in report:
    json.dump(report, open(path, "w"))
sys.exit(report["exit_code"])
"""


@pytest.fixture
def spark(tmp_path, monkeypatch):
    """Runs the operator with a stand-in for spark-submit; returns its arguments and what went to XCom."""
    program = tmp_path / "spark-submit"
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def run(answer, params=NO_CHOICE, config_path="/f", attempt=1):
        (tmp_path / "answer.json").write_text(json.dumps(answer))
        operator = ReplicateOperator(task_id="replicate", flow="A->B", config_path=config_path, conn_id="spark_default")
        context = {
            "params": params,
            "dag": SimpleNamespace(dag_id="mirror__A__B"),
            "run_id": "manual 1",
            "dag_run": SimpleNamespace(start_date=datetime.now(UTC) - timedelta(hours=10)),
            "ti": SimpleNamespace(try_number=attempt, xcom_push=lambda key, value: pushed.update({key: value})),
        }
        operator.render_template_fields(context)
        try:
            operator.execute(context)
        finally:
            arguments[:] = json.loads((tmp_path / "arguments.json").read_text())
            environment.update(json.loads((tmp_path / "environment.json").read_text()))
        return arguments, pushed

    arguments: list[str] = []
    pushed: dict[str, object] = {}
    environment: dict[str, str] = {}
    run.arguments, run.pushed, run.environment = arguments, pushed, environment
    with warnings.catch_warnings():
        # The provider's hook leaves the pipe to spark-submit for the garbage collector to close.
        warnings.simplefilter("ignore", ResourceWarning)
        yield run
        gc.collect()


DONE = {
    "exit_code": 0,
    "run_id": "r",
    "records": 5,
    "bytes": 50,
    "rounds": 1,
    "idle_partitions": 0,
    "seconds": 1.5,
    "copy_seconds": 0.5,
    "partitions": [],
    "problems": [],
}


def test_a_scheduled_run_passes_only_the_flow_and_who_started_it(spark):
    arguments, _ = spark(DONE)
    job = arguments[next(n for n, word in enumerate(arguments) if word.endswith("replicate.py")) + 1 :]
    assert job[:-1] == ["--config=/f", "--flow=A->B", f"--trigger={trigger_text('mirror__A__B', 'manual 1')}"]
    assert job[-1].startswith("--report=")


def test_the_trigger_forms_choices_become_arguments(spark):
    choices = {"topics": ["orders", " ", "p.*"], "tasks": 3, "max_seconds": 0, "dry_run": True, "gaps": "accept"}
    arguments, _ = spark(DONE, choices)
    assert [word for word in arguments if word.startswith("--topics")] == ["--topics=orders", "--topics=p.*"]
    assert {"--tasks=3", "--max-seconds=0", "--dry-run", "--gaps=accept"} <= set(arguments)


def test_without_a_connection_spark_runs_here_and_not_on_yarn(spark, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    arguments, _ = spark(DONE)
    assert arguments[arguments.index("--master") + 1] == "local[*]"


def test_a_connection_names_the_cluster(spark, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "spark://m", "port": 7077}')
    arguments, _ = spark(DONE)
    assert arguments[arguments.index("--master") + 1] == "spark://m:7077"
    # Executors elsewhere have a Python of their own.
    assert not any(word.startswith("spark.pyspark.python=") for word in arguments)


def test_spark_gets_the_jobs_settings_when_it_is_submitted(spark):
    arguments, _ = spark(DONE)
    assert {"spark.speculation=false", "spark.task.maxFailures=1"} <= set(arguments)
    assert {f"{key}={value}" for key, value in SPARK_SETTINGS.items()} <= set(arguments)


def test_a_flow_with_transforms_gets_a_jvm_for_them(spark, tmp_path):
    file = tmp_path / "mirror.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
        "A->B.mirror.transforms = live\nmirror.transform.live.filter = key IS NOT NULL\n"
    )
    arguments, _ = spark(DONE, config_path=str(file))
    assert f"spark.driver.defaultJavaOptions={TRANSFORMING_JVM}" in arguments


def test_the_source_is_read_no_faster_than_the_form_says(spark):
    arguments, _ = spark(DONE, {**NO_CHOICE, "bytes_per_second": 1000})
    assert "--bytes-per-second=1000" in arguments


@pytest.mark.parametrize(("chosen", "told"), [(NO_CHOICE, "INFO"), ({**NO_CHOICE, "log_level": "DEBUG"}, "DEBUG")])
def test_the_forms_log_level_reaches_the_job(spark, chosen, told):
    spark(DONE, chosen)
    assert spark.environment["MIRROR_LOG_LEVEL"] == told


@pytest.mark.parametrize("master", ["k8s://https://host:443", "spark://k8s-spark:7077", "yarn"])
def test_given_a_cluster_when_the_driver_runs_here_then_it_has_the_forms_log_level(spark, monkeypatch, master):
    # The provider makes settings for drivers in pods of its variables, as soon as `k8s` is in the master's name.
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": master}))
    monkeypatch.setattr(submission, "_has_kubernetes_provider", lambda: True)
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)

    spark(DONE, {**NO_CHOICE, "log_level": "DEBUG"})

    assert spark.environment["MIRROR_LOG_LEVEL"] == "DEBUG"


def test_the_driver_has_airflows_python_unless_sparks_own_variable_names_another(spark, monkeypatch):
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    assert f"spark.pyspark.driver.python={sys.executable}" in spark(DONE)[0]
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/opt/spark-venv/bin/python")
    assert not any(word.startswith("spark.pyspark.driver.python=") for word in spark(DONE)[0])
    assert spark.environment["PYSPARK_DRIVER_PYTHON"] == "/opt/spark-venv/bin/python"


def test_a_servers_address_in_the_environment_does_not_go_before_the_connection(spark, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")

    spark(DONE)

    assert "SPARK_REMOTE" not in spark.environment
    assert os.environ["SPARK_REMOTE"] == "sc://elsewhere"


def test_a_retried_task_submits_a_run_of_its_own(spark):
    """The job makes an id for every run when it is given none; the ledger refuses one that it has seen."""
    attempts = [list(spark(DONE)[0]) for _ in range(2)]
    given = [
        JobArguments.parse([word for word in words if word.startswith("--") and "=" in word]) for words in attempts
    ]
    assert [arguments.run_id for arguments in given] == ["", ""]
    # The report task finds all attempts of a DAG run by this.
    assert given[0].trigger == given[1].trigger == trigger_text("mirror__A__B", "manual 1")


def test_a_retried_task_has_what_earlier_attempts_have_left_of_the_longest_time(spark):
    """Airflow's timeout counts from the start of the DAG run."""
    assert not any(word.startswith("--elapsed-seconds") for word in spark(DONE)[0])
    (word,) = [word for word in spark(DONE, attempt=2)[0] if word.startswith("--elapsed-seconds=")]
    assert 36_000 <= float(word.partition("=")[2]) < 36_600


def test_the_report_reaches_xcom(spark):
    _, pushed = spark(DONE)
    assert pushed[REPORT_KEY]["records"] == 5


@pytest.mark.parametrize(("code", "kind"), [(1, ReplicationRunError), (2, ConfigurationError), (3, ReplicationError)])
def test_the_exit_code_becomes_a_typed_error_and_the_report_still_reaches_xcom(spark, code, kind):
    with pytest.raises(kind):
        spark({**DONE, "exit_code": code})
    assert spark.pushed[REPORT_KEY]["exit_code"] == code


def locked(error):
    """The report of a job that did not get the run lock, or lost it."""
    return {**DONE, "exit_code": 1, "run_id": None, "error": error.attributes()}


def test_a_run_beside_one_that_is_active_is_skipped(spark):
    error = AnotherRunError("run r1 is active since noon.", where=Where(flow="A->B"))

    with pytest.raises(AirflowSkipException, match="run r1 is active since noon"):
        spark(locked(error))

    assert spark.pushed[REPORT_KEY]["skipped"] is not None


def test_a_run_that_lost_its_lock_fails(spark):
    error = RunLockedError("run r1 could not renew its lock for 30 s.", where=Where(flow="A->B"))

    with pytest.raises(ReplicationRunError, match="could not renew its lock"):
        spark(locked(error))

    assert spark.pushed[REPORT_KEY]["skipped"] is None


def test_a_job_that_left_no_report_is_judged_by_its_exit_code(spark):
    with pytest.raises(ConfigurationError):
        spark({"exit_code": 2})
    assert spark.pushed == {}
