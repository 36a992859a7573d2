"""The task that copies: `spark-submit spark_jobs/replicate.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowException, AirflowSkipException, Context
from mirror_lib.airflow.flow.form import TriggerChoices
from mirror_lib.airflow.spark import SparkJobOperator, exit_code_in, failure_of, skip_reason, xcom_value
from mirror_lib.observe import trigger_text
from mirror_lib.relay.job import JobArguments, JobReport
from mirror_lib.spark import job_file

#: XCom key of the job's report for the `report` task, set also if the job failed.
REPORT_KEY = "report"


class ReplicateOperator(SparkJobOperator):
    """Submits the Spark job of one flow and turns its exit code into a typed error.

    The job can be submitted again safely: it continues at the stored positions. Every attempt is its own run in the
    ledger, since the job gets no run id and makes one; the ledger rejects an id that it has seen.
    """

    def __init__(self, *, flow: str, **kwargs: Any) -> None:
        super().__init__(application=job_file(), flow=flow, name=f"mirror {flow}", **kwargs)

    def _judge(self, context: Context, report: Path, failure: AirflowException | None) -> None:
        """Push the report to XCom in any case. It is not a failure if another run is active."""
        found = JobReport.read(report)
        if found is not None:
            context["ti"].xcom_push(key=REPORT_KEY, value=xcom_value(found))
            self._log_plan(found)
            if (skipped := skip_reason(found)) is not None:
                raise AirflowSkipException(f"flow {self.flow}: {skipped}")
        if failure is not None:
            code = found.exit_code if found is not None else exit_code_in(str(failure))
            raise failure_of(self.flow, code, found) from failure

    def _command_line(self, context: Context, report: Path) -> list[str]:
        choices = TriggerChoices.from_params(context["params"])
        return JobArguments(
            config=Path(self.config_path),
            flow=self.flow,
            trigger=trigger_text(context["dag"].dag_id, context["run_id"]),
            report=report,
            topics=choices.topics,
            tasks=choices.tasks,
            max_seconds=choices.max_seconds,
            poll_seconds=choices.poll_seconds,
            dry_run=choices.dry_run,
            gaps=choices.gaps,
            bytes_per_second=choices.bytes_per_second,
        ).command_line()

    def _log_plan(self, report: JobReport) -> None:
        if report.dry_run:
            self.log.info("Dry run: nothing was changed. The log of the report task shows the plan.")
