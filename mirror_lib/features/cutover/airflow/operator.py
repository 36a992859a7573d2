"""The Spark job of a cutover, as a task."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mirror_lib.airflow import ENDED_STATES, AirflowException, AirflowFailException, Context, task_secrets, task_state
from mirror_lib.airflow.spark.operator import SparkJobOperator
from mirror_lib.config.loader import load
from mirror_lib.features.cutover.job_arguments import CutoverArguments
from mirror_lib.features.cutover.states.cutover import Event, State, after
from mirror_lib.features.cutover.states.situation import situation_of
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.spark.submit import job_file

_log = logging.getLogger(__name__)


class CutoverOperator(SparkJobOperator):
    """Submits the job that runs the steps of a cutover, with one warm Spark session for all of them."""

    def __init__(self, *, flow: str, named_by: str, answered_by: str, **kwargs: Any) -> None:
        """See `SparkJobOperator`.

        Args:
            named_by: the task that returned the cutover's name.
            answered_by: the last task that passes an answer on.
        """
        super().__init__(
            application=job_file().with_name("cutover.py"), flow=flow, name=f"mirror cutover {flow}", **kwargs
        )
        self.named_by = named_by
        self.answered_by = answered_by

    def execute(self, context: Context) -> None:
        """Run the job.

        Raises:
            AirflowFailException: it was cleared without the tasks that ask, so no question would be asked.
            MirrorError: errors of `SparkJobOperator.execute`.
        """
        if task_state(context, self.answered_by) in ENDED_STATES and self._may_ask(context):
            raise AirflowFailException(
                f"task {self.answered_by} has ended, so no answer could be passed on. Trigger this DAG again with the "
                "name of the cutover."
            )
        super().execute(context)

    def _may_ask(self, context: Context) -> bool:
        """Return True if a question may still come: there is none after the release."""
        with self._opened_ledger() as ledger:
            state = situation_of(ledger, self._name(context, ledger)).state
        return after(state, Event.TRIGGER) is not State.WATCHING

    @contextmanager
    def _opened_ledger(self) -> Iterator[Ledger]:
        with task_secrets():
            config = load(Path(self.config_path))
            with open_ledger(config) as ledger:
                yield ledger

    def _name(self, context: Context, ledger: Ledger) -> str:
        """Return the name from XCom, which users of this DAG may write, if it is a cutover of this flow."""
        # It imports Kafka's client, and DAGs are parsed all the time.
        from mirror_lib.features.cutover.opening import open_cutover

        return open_cutover(ledger, context["ti"].xcom_pull(task_ids=self.named_by), flow=self.flow).name

    def _command_line(self, context: Context, report: Path) -> list[str]:
        run = context["dag_run"]
        with self._opened_ledger() as ledger:
            name = self._name(context, ledger)
        return CutoverArguments(
            config=Path(self.config_path),
            name=name,
            by=trigger_text(run.dag_id, run.run_id),
            wait_seconds=float(context["params"]["wait_hours"]) * 3600,
            report=report,
        ).command_line()

    def _judge(self, context: Context, report: Path, failure: AirflowException | None) -> None:
        """A gate that does not hold is not retried: a retry at once would find the same."""
        del context
        if failure is None:
            return
        if not report.exists():
            raise failure
        raise AirflowFailException(
            "the cutover stopped: the report shows the failed gate, or the missing answer. Fix the cause, then trigger "
            "this DAG with the same name."
        ) from failure
