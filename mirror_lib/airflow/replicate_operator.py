"""The task that copies: `spark-submit spark_jobs/replicate.py`."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowException, Context, SparkSubmitOperator
from mirror_lib.airflow.job_report import JobReport, exit_code_in, failure_of
from mirror_lib.airflow.spark_connection import describe_master, runs_here, spark_master, submit_environment
from mirror_lib.errors import ConfigurationError
from mirror_lib.observe.airflow_runs import trigger_text

#: XCom key under which the job's report travels to the `report` task, also when the job failed.
REPORT_KEY = "report"

#: `trigger_text` of the DAG run that is under way, as an Airflow template.
_TRIGGER = trigger_text("{{ dag.dag_id }}", "{{ run_id }}")

# Attempts of a task have effects outside Spark: repeating them is the run's business, not Spark's.
_CONF = {"spark.speculation": "false", "spark.task.maxFailures": "1"}


def job_file() -> Path:
    """The Spark job's file, found through the installed package without running it.

    Raises:
        ConfigurationError: `spark_jobs` is not installed here.
    """
    spec = importlib.util.find_spec("spark_jobs.replicate")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the package spark_jobs is not importable, so there is no job to submit.",
            action="Install this project (pip install batch-mirror) where Airflow runs.",
        )
    return Path(spec.origin)


def job_arguments(flow: str, config_path: str) -> list[str]:
    """The job's arguments as Airflow templates over the trigger form; those that render empty are left out.

    Several topics become one alternation, which is how MirrorMaker 2 itself joins a list (mm2-facts, `MirrorUtils`).
    """
    return [
        f"--config={config_path}",
        f"--flow={flow}",
        f"--trigger={_TRIGGER}",
        "{% if params.topics %}--topics={{ params.topics | join('|') }}{% endif %}",
        "{% if params.tasks is not none %}--tasks={{ params.tasks }}{% endif %}",
        "{% if params.max_seconds is not none %}--max-seconds={{ params.max_seconds }}{% endif %}",
        "{% if params.dry_run %}--dry-run{% endif %}",
    ]


class ReplicateOperator(SparkSubmitOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Submits the Spark job of one flow and turns its exit code into a typed error.

    The job is safe to submit again: it goes on from the stored positions.
    """

    conf: dict[str, str]
    application_args: list[str]

    def __init__(self, *, flow: str, config_path: str, conn_id: str, **kwargs: Any) -> None:
        super().__init__(
            application=str(job_file()),
            application_args=job_arguments(flow, config_path),
            conn_id=conn_id,
            name=f"mirror {flow}",
            conf=dict(_CONF),
            **kwargs,
        )
        self.flow = flow
        self.spark_conn_id = conn_id

    def execute(self, context: Context) -> None:
        """Run the job; its report goes to XCom whatever the outcome.

        Raises:
            MirrorError: the job ended with another exit code than 0.
        """
        self.log.info("%s", describe_master(self.spark_conn_id))
        self.conf = {**_CONF, **_python_of(self.spark_conn_id)}
        with tempfile.TemporaryDirectory(prefix="mirror-report-") as folder:
            path = Path(folder, "report.json")
            self.application_args = [*filter(None, self.application_args), f"--report={path}"]
            failure: AirflowException | None = None
            try:
                with submit_environment(self.spark_conn_id):
                    super().execute(context)
            except AirflowException as error:
                failure = error
            report = JobReport.read(path)
        if report is not None:
            context["ti"].xcom_push(key=REPORT_KEY, value=report.to_dict())
            self._log_plan(report)
        if failure is not None:
            code = report.exit_code if report is not None else exit_code_in(str(failure))
            raise failure_of(self.flow, code, report) from failure

    def _log_plan(self, report: JobReport) -> None:
        if report.dry_run:
            self.log.info("Dry run: nothing was changed. The plan is above and in the report task.")


def _python_of(conn_id: str) -> dict[str, str]:
    """Spark settings that name this Python for the driver, and for executors when they run on this machine.

    Executors of a cluster have their own Python: `PYSPARK_PYTHON` or the cluster's defaults name it there.
    """
    settings = {"spark.pyspark.driver.python": sys.executable}
    if runs_here(spark_master(conn_id)):
        settings["spark.pyspark.python"] = sys.executable
    return settings
