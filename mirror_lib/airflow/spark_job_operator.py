"""What all tasks that submit a Spark job of this project have in common."""

from __future__ import annotations

import os
import tempfile
from abc import abstractmethod
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowException, Context, SparkSubmitOperator
from mirror_lib.airflow.form_fields import USUAL_LOG_LEVEL
from mirror_lib.airflow.spark_connection import describe_master, master_of, submit_environment
from mirror_lib.relay.spark_settings import SPARK_SETTINGS
from mirror_lib.relay.submission import submit_settings

#: Read by the job (`spark_jobs.job_log`).
_LOG_LEVEL = "MIRROR_LOG_LEVEL"
#: Spark's own variable: the Python that runs the job, where that is another environment than Airflow's.
_DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"


class SparkJobOperator(SparkSubmitOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Submits a job that writes a report to a file, and has the report judged whatever became of the job."""

    conf: dict[str, str]
    application_args: list[str]
    env_vars: dict[str, str]

    def __init__(self, *, application: Path, flow: str, config_path: str, conn_id: str, **kwargs: Any) -> None:
        super().__init__(application=str(application), conn_id=conn_id, conf=dict(SPARK_SETTINGS), **kwargs)
        self.flow = flow
        self.config_path = config_path
        self.spark_conn_id = conn_id

    def execute(self, context: Context) -> None:
        """Run the job.

        Raises:
            MirrorError: what `_judge` makes of its end.
        """
        self.log.info("%s", describe_master(self.spark_conn_id))
        self.conf = submit_settings(master_of(self.spark_conn_id))
        if os.environ.get(_DRIVER_PYTHON):
            del self.conf["spark.pyspark.driver.python"]
        self.env_vars = {_LOG_LEVEL: context["params"].get("log_level") or USUAL_LOG_LEVEL}
        with tempfile.TemporaryDirectory(prefix="mirror-report-") as folder:
            path = Path(folder, "report.json")
            self.application_args = self._command_line(context, path)
            failure: AirflowException | None = None
            try:
                with submit_environment(self.spark_conn_id):
                    super().execute(context)
            except AirflowException as error:
                failure = error
            self._judge(context, path, failure)

    @abstractmethod
    def _command_line(self, context: Context, report: Path) -> list[str]:
        """The job's arguments.

        Args:
            report: where it is to write its report.
        """

    @abstractmethod
    def _judge(self, context: Context, report: Path, failure: AirflowException | None) -> None:
        """Pass the report on, and raise what has to be said of a failure.

        Args:
            report: may not exist.
            failure: None when the job ended with exit code 0.
        """
