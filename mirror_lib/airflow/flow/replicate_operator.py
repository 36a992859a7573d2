"""The task that copies: `spark-submit spark_jobs/replicate.py`, or the same job on a Spark Connect server."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowException, AirflowSkipException, Context
from mirror_lib.airflow.flow.form import job_arguments
from mirror_lib.airflow.spark.operator import SparkJobOperator
from mirror_lib.airflow.spark.outcome import exit_code_in, failure_of, skip_reason, xcom_value
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.copy.job.report import JobReport
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.spark.submit import job_file

_log = logging.getLogger(__name__)
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
        self._judge_report(context, JobReport.read(report), failure)

    def _judge_report(self, context: Context, found: JobReport | None, failure: AirflowException | None) -> None:
        """Push the report to XCom in any case. It is not a failure if another run is active."""
        if found is not None:
            context["ti"].xcom_push(key=REPORT_KEY, value=xcom_value(found))
            self._log_plan(found)
            if (skipped := skip_reason(found)) is not None:
                raise AirflowSkipException(f"flow {self.flow}: {skipped}")
        if failure is not None:
            code = found.exit_code if found is not None else exit_code_in(str(failure))
            raise failure_of(self.flow, code, found) from failure

    def _command_line(self, context: Context, report: Path) -> list[str]:
        elapsed = elapsed_seconds(context)
        return replace(self._arguments(context), report=report, elapsed_seconds=elapsed).command_line()

    def _arguments(self, context: Context) -> JobArguments:
        return replace(job_arguments(self.flow, self.config_path, context["params"]), trigger=self._trigger(context))

    @staticmethod
    def _trigger(context: Context) -> str:
        return trigger_text(context["dag"].dag_id, context["run_id"])

    def _log_plan(self, report: JobReport) -> None:
        if report.dry_run:
            _log.info("Dry run: nothing was changed. The log of the report task shows the plan.")


def elapsed_seconds(context: Context) -> float | None:
    """Return the seconds that earlier attempts have used since the start of the DAG run, from which its timeout counts.

    None in the first attempt: a new limit then begins with the copy.
    """
    run, attempt = context.get("dag_run"), getattr(context["ti"], "try_number", 1)
    if run is None or run.start_date is None or attempt <= 1:
        return None
    return max(float((datetime.now(UTC) - run.start_date).total_seconds()), 0.0)
