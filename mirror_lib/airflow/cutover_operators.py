"""The Spark job of a cutover, as a task."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowException, AirflowFailException, Context
from mirror_lib.airflow.spark_job_operator import SparkJobOperator
from mirror_lib.observe.airflow_runs import trigger_text
from mirror_lib.relay.submission import job_file

_log = logging.getLogger(__name__)


class CutoverOperator(SparkJobOperator):
    """Submits the job that takes a cutover through its steps, with one warm Spark session for all of them."""

    def __init__(self, *, flow: str, named_by: str, **kwargs: Any) -> None:
        """As `SparkJobOperator`.

        Args:
            named_by: the task that returned the cutover's name.
        """
        super().__init__(
            application=job_file().with_name("cutover.py"), flow=flow, name=f"mirror cutover {flow}", **kwargs
        )
        self.named_by = named_by

    def _command_line(self, context: Context, report: Path) -> list[str]:
        from mirror_lib.runbook.job import CutoverArguments

        run = context["dag_run"]
        return CutoverArguments(
            config=Path(self.config_path),
            name=context["ti"].xcom_pull(task_ids=self.named_by),
            by=trigger_text(run.dag_id, run.run_id),
            wait_seconds=float(context["params"]["wait_hours"]) * 3600,
            report=report,
        ).command_line()

    def _judge(self, context: Context, report: Path, failure: AirflowException | None) -> None:
        """A gate that does not hold is no fault: trying again at once would find the same."""
        del context
        if failure is None:
            return
        if not report.exists():
            raise failure
        raise AirflowFailException(
            "the cutover stands still: its report tells at which gate. Mend what it names, and trigger this DAG with "
            "the same name."
        ) from failure
