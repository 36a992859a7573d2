"""The task that copies: `spark-submit spark_jobs/replicate.py`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowException, Context, SparkSubmitOperator
from mirror_lib.airflow.job_outcome import exit_code_in, failure_of, xcom_value
from mirror_lib.airflow.spark_connection import describe_master, master_of, submit_environment
from mirror_lib.airflow.trigger_form import TriggerChoices
from mirror_lib.observe.airflow_runs import trigger_text
from mirror_lib.relay.job_arguments import JobArguments
from mirror_lib.relay.job_report import JobReport
from mirror_lib.relay.spark_settings import SPARK_SETTINGS
from mirror_lib.relay.submission import job_file, submit_settings

#: XCom key under which the job's report travels to the `report` task, also when the job failed.
REPORT_KEY = "report"


class ReplicateOperator(SparkSubmitOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Submits the Spark job of one flow and turns its exit code into a typed error.

    The job is safe to submit again: it goes on from the stored positions. Every attempt is a run of its own in the
    ledger, since the job is given no run id and makes one; the ledger refuses an id that it has seen.
    """

    conf: dict[str, str]
    application_args: list[str]

    def __init__(self, *, flow: str, config_path: str, conn_id: str, **kwargs: Any) -> None:
        super().__init__(
            application=str(job_file()),
            conn_id=conn_id,
            name=f"mirror {flow}",
            conf=dict(SPARK_SETTINGS),
            **kwargs,
        )
        self.flow = flow
        self.config_path = config_path
        self.spark_conn_id = conn_id

    def execute(self, context: Context) -> None:
        """Run the job; its report goes to XCom whatever the outcome.

        Raises:
            MirrorError: the job ended with another exit code than 0.
        """
        self.log.info("%s", describe_master(self.spark_conn_id))
        self.conf = submit_settings(master_of(self.spark_conn_id))
        with tempfile.TemporaryDirectory(prefix="mirror-report-") as folder:
            path = Path(folder, "report.json")
            self.application_args = self._arguments(context, path).command_line()
            failure: AirflowException | None = None
            try:
                with submit_environment(self.spark_conn_id):
                    super().execute(context)
            except AirflowException as error:
                failure = error
            report = JobReport.read(path)
        if report is not None:
            context["ti"].xcom_push(key=REPORT_KEY, value=xcom_value(report))
            self._log_plan(report)
        if failure is not None:
            code = report.exit_code if report is not None else exit_code_in(str(failure))
            raise failure_of(self.flow, code, report) from failure

    def _arguments(self, context: Context, report: Path) -> JobArguments:
        choices = TriggerChoices.from_params(context["params"])
        return JobArguments(
            config=Path(self.config_path),
            flow=self.flow,
            trigger=trigger_text(context["dag"].dag_id, context["run_id"]),
            report=report,
            topics=choices.topics,
            tasks=choices.tasks,
            max_seconds=choices.max_seconds,
            dry_run=choices.dry_run,
            gaps=choices.gaps,
        )

    def _log_plan(self, report: JobReport) -> None:
        if report.dry_run:
            self.log.info("Dry run: nothing was changed. The report task shows the plan.")
