import json
import os
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks import spark_submit

from mirror_lib.airflow.compatibility import AirflowSkipException
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY, ReplicateOperator
from mirror_lib.airflow.spark import submission
from mirror_lib.airflow.spark.outcome import ReplicationRunError
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.errors import AnotherRunError, ConfigurationError, RunLockedError, Where
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.spark.settings import SPARK_SETTINGS, TRANSFORMING_JVM
from tests.support.airflow.stand_in_submit import DONE
from tests.support.flow_files import write_flow

NO_CHOICE = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}


@pytest.fixture
def spark(submit):
    """Runs the operator with a stand-in for spark-submit, and returns that one's arguments."""

    def run(report=DONE, config_path="/f", attempt=1, **choices):
        operator = ReplicateOperator(task_id="replicate", flow="A->B", config_path=config_path, conn_id="spark_default")
        submit.execute(
            operator,
            report,
            attempt=attempt,
            params={**NO_CHOICE, **choices},
            dag=SimpleNamespace(dag_id="mirror__A__B"),
            run_id="manual 1",
            dag_run=SimpleNamespace(start_date=datetime.now(UTC) - timedelta(hours=10)),
        )
        return submit.arguments

    return run


def test_a_scheduled_run_has_the_flow_and_who_started_it_and_the_settings_of_every_job(spark, submit, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)

    arguments = spark()

    job = submit.arguments_of("replicate")
    assert job[:-1] == ["--config=/f", "--flow=A->B", f"--trigger={trigger_text('mirror__A__B', 'manual 1')}"]
    assert job[-1].startswith("--report=")
    # Without a connection Spark runs here and not on YARN.
    assert arguments[arguments.index("--master") + 1] == "local[*]"
    assert {"spark.speculation=false", "spark.task.maxFailures=1"} <= set(arguments)
    assert {f"{key}={value}" for key, value in SPARK_SETTINGS.items()} <= set(arguments)
    assert submit.environment["MIRROR_LOG_LEVEL"] == "INFO"
    assert submit.pushed[REPORT_KEY]["records"] == 5


def test_the_trigger_forms_choices_become_arguments(spark, submit):
    choices = {"topics": ["orders", " ", "p.*"], "tasks": 3, "max_seconds": 0, "dry_run": True, "gaps": "accept"}

    arguments = spark(**choices, bytes_per_second=1000, log_level="DEBUG")

    assert [word for word in arguments if word.startswith("--topics")] == ["--topics=orders", "--topics=p.*"]
    assert {"--tasks=3", "--max-seconds=0", "--dry-run", "--gaps=accept", "--bytes-per-second=1000"} <= set(arguments)
    assert submit.environment["MIRROR_LOG_LEVEL"] == "DEBUG"


def test_a_flow_with_transforms_gets_a_jvm_for_them(spark, tmp_path):
    file = write_flow(tmp_path, "A->B.mirror.transforms = live", "mirror.transform.live.filter = key IS NOT NULL")
    assert f"spark.driver.defaultJavaOptions={TRANSFORMING_JVM}" in spark(config_path=str(file))


@pytest.mark.parametrize("master", ["k8s://https://host:443", "spark://k8s-spark:7077", "yarn"])
def test_given_a_cluster_when_the_driver_runs_here_then_it_has_the_forms_log_level(spark, submit, monkeypatch, master):
    # The provider makes settings for drivers in pods of its variables, as soon as `k8s` is in the master's name.
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": master}))
    monkeypatch.setattr(submission, "_has_kubernetes_provider", lambda: True)
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)

    spark(log_level="DEBUG")

    assert submit.environment["MIRROR_LOG_LEVEL"] == "DEBUG"


def test_the_driver_has_airflows_python_unless_sparks_own_variable_names_another(spark, submit, monkeypatch):
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    assert f"spark.pyspark.driver.python={sys.executable}" in spark()
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/opt/spark-venv/bin/python")
    assert not any(word.startswith("spark.pyspark.driver.python=") for word in spark())
    assert submit.environment["PYSPARK_DRIVER_PYTHON"] == "/opt/spark-venv/bin/python"


def test_a_servers_address_in_the_environment_does_not_go_before_the_connection(spark, submit, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")

    spark()

    assert "SPARK_REMOTE" not in submit.environment
    assert os.environ["SPARK_REMOTE"] == "sc://elsewhere"


def test_a_retried_task_submits_a_run_of_its_own_for_the_rest_of_the_longest_time(spark):
    """The job makes an id for every run when it is given none; the ledger refuses one that it has seen.

    Airflow's timeout counts from the start of the DAG run.
    """
    first, second = (spark(attempt=attempt) for attempt in (1, 2))
    given = [
        JobArguments.parse([word for word in words if word.startswith("--") and "=" in word])
        for words in (first, second)
    ]
    assert [arguments.run_id for arguments in given] == ["", ""]
    # The report task finds all attempts of a DAG run by this.
    assert given[0].trigger == given[1].trigger == trigger_text("mirror__A__B", "manual 1")
    assert not any(word.startswith("--elapsed-seconds") for word in first)
    assert 36_000 <= given[1].elapsed_seconds < 36_600


@pytest.mark.parametrize(
    ("kind", "what", "raised", "is_skipped"),
    [
        (AnotherRunError, "run r1 is active since noon.", AirflowSkipException, True),
        (RunLockedError, "run r1 could not renew its lock for 30 s.", ReplicationRunError, False),
    ],
)
def test_a_run_beside_one_that_is_active_is_skipped_and_one_that_lost_its_lock_fails(
    spark, submit, kind, what, raised, is_skipped
):
    error = kind(what, where=Where(flow="A->B")).attributes()

    with pytest.raises(raised, match=what):
        spark({**DONE, "exit_code": 1, "run_id": None, "error": error})

    assert (submit.pushed[REPORT_KEY]["skipped"] is not None) is is_skipped


def test_a_job_that_left_no_report_is_judged_by_its_exit_code(spark, submit):
    with pytest.raises(ConfigurationError):
        spark({"exit_code": 2})
    assert submit.pushed == {}
