"""The task of a backfill's DAG that submits the Spark job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mirror_lib.airflow import Context
from mirror_lib.airflow.flow.replicate_operator import ReplicateOperator
from mirror_lib.copy.job.arguments import ASK, JobArguments
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.backfill.airflow.form import BackfillChoices
from mirror_lib.past_runs.airflow_runs import trigger_text


class BackfillOperator(ReplicateOperator):
    """Submits the Spark job of a flow for the backfill that the previous task defined."""

    def __init__(self, *, defined_by: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.defined_by = defined_by

    def _command_line(self, context: Context, report: Path) -> list[str]:
        choices = BackfillChoices.from_params(context["params"])
        name = context["ti"].xcom_pull(task_ids=self.defined_by)
        if not name:
            # Without a name the job would be a run of the flow itself.
            dag_id = context["dag"].dag_id
            raise ConfigurationError(
                f"the task {self.defined_by} has not defined a backfill in this run: its state was set manually, or "
                "its result was deleted.",
                where=Where(flow=self.flow),
                action=f"Nothing was copied. Clear the task {self.defined_by}, or trigger the DAG {dag_id} again.",
            )
        return JobArguments(
            config=Path(self.config_path),
            flow=self.flow,
            trigger=trigger_text(context["dag"].dag_id, context["run_id"]),
            report=report,
            tasks=choices.tasks,
            gaps="accept" if choices.accept_gaps else ASK,
            backfill=name,
            max_bytes=choices.max_bytes,
            bytes_per_second=choices.bytes_per_second,
        ).command_line()
