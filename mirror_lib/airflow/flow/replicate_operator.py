"""The task that copies: `spark-submit spark_jobs/replicate.py`, or the same job on a Spark Connect server."""

from __future__ import annotations

import logging
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.compatibility import AirflowException, AirflowRuntimeError, AirflowSkipException, Context
from mirror_lib.airflow.flow.form import TriggerChoices
from mirror_lib.airflow.retries import failing_at_once
from mirror_lib.airflow.secret_provider import task_secrets
from mirror_lib.airflow.spark import (
    FOLDER_PREFIX,
    SparkJobOperator,
    check_deferrable,
    discard_old_folders,
    exit_code_in,
    failure_of,
    is_driver_folder,
    show_log,
    skip_reason,
    start_detached,
    xcom_value,
)
from mirror_lib.airflow.task_states import task_state
from mirror_lib.config import load
from mirror_lib.ledger import Ledger, ledger_url, open_ledger
from mirror_lib.observe import trigger_text
from mirror_lib.relay.job import LEASE_SECONDS, JobArguments, JobReport
from mirror_lib.spark import NoDriverHostError, job_file, job_module, shorten

if TYPE_CHECKING:
    from mirror_lib.ledger import DriverRow

_log = logging.getLogger(__name__)
#: XCom key of the job's report for the `report` task, set also if the job failed.
REPORT_KEY = "report"
_REPORT = "report.json"
_RUNNING = "running"


class ReplicateOperator(SparkJobOperator):
    """Submits the Spark job of one flow and turns its exit code into a typed error.

    The job can be submitted again safely: it continues at the stored positions. Every attempt is its own run in the
    ledger, since the job gets no run id and makes one; the ledger rejects an id that it has seen.

    If it is deferrable, a driver host runs the job, and the task waits in the triggerer until the job has ended. The
    job's state is in the ledger, which the triggerer and all workers share.
    """

    def __init__(self, *, flow: str, deferrable: bool = False, **kwargs: Any) -> None:
        super().__init__(application=job_file(), flow=flow, name=f"mirror {flow}", **kwargs)
        self.deferrable = deferrable
        self._ledger_url = ""
        #: The driver for which the task is about to wait. No trigger waits for it yet.
        self._waits_for: str | None = None
        self._is_killed = False

    def resume(self, context: Context, event: Mapping[str, str]) -> None:
        """Continue after the wait: report the driver's result, as without a deferral.

        Args:
            event: of `DriverTrigger`.

        Raises:
            MirrorError: the job failed.
        """
        with failing_at_once():
            self._resume(context, event["driver"])

    def _resume(self, context: Context, driver: str) -> None:
        with self._opened_ledger() as ledger:
            row = ledger.drivers.find(driver)
            runs = ledger.drivers.running(self.flow)
            if runs is not None and runs.id == driver:
                _log.warning("The triggerer could not read the ledger; driver %s still runs.", driver)
                self._defer_until_end_of(driver, context, ledger)
        if row is None or row.cancelled_at is not None or not self._is_for(row, context):
            _log.info("Driver %s has ended; this attempt copies what is left.", driver)
            self.execute(context)
            return
        folder = Path(row.folder)
        found = JobReport.from_dict(row.report) if row.report is not None else None
        if found is None and row.host == socket.gethostname() and is_driver_folder(folder):
            # A driver that could not use the ledger.
            found = JobReport.read(folder / _REPORT)
        if row.host != socket.gethostname() or not show_log(folder):
            _log.info("The log of the driver is in the folder %s on %s.", folder, row.host)
        failure = None
        if row.ended_at is None and found is None:
            failure = AirflowException(
                f"driver {driver} on {row.host} has died: it gave no sign of life for {row.lease_seconds:g} s."
            )
        elif code := row.exit_code if found is None else found.exit_code:
            failure = AirflowException(f"The driver {driver} failed. Error code is: {code}.")
        self._judge_report(context, found, failure)

    def on_kill(self) -> None:
        """End the job, also one for which the task is about to be deferred.

        Airflow calls this in a signal handler, and then the task continues where it was. So nothing is asked of Airflow
        here, nor is the file read, which does: the interrupted code may hold the lock of the connection to Airflow.
        """
        self._is_killed = True
        if self._waits_for is not None:
            with Ledger.open(self._ledger_url) as ledger:
                ledger.drivers.cancel(self._waits_for)
        elif self._driver is not None or not self.deferrable:
            super().on_kill()

    def _defer(self, context: Context, environment: Mapping[str, str] | None) -> None:
        """Start the job at the driver host and defer the task; a dry run is too short for that.

        Raises:
            TaskDeferred: the task waits.
            ConfigurationError: the task cannot be deferred here.
            AirflowException: Airflow has ended the task meanwhile.
        """
        if not self.deferrable or TriggerChoices.from_params(context["params"]).dry_run:
            return
        check_deferrable(self.spark_conn_id)
        assert environment is not None
        with self._opened_ledger() as ledger:
            if (runs := ledger.drivers.running(self.flow)) is not None:
                self._wait_for_earlier(runs, context, ledger)
            discard_old_folders()
            folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
            driver = str(uuid.uuid4())
            arguments = replace(
                self._arguments(context),
                run_id=driver,
                report=folder / _REPORT,
                elapsed_seconds=_elapsed_seconds(context),
                detached=True,
            ).command_line()
            ledger.drivers.begin(
                id=driver,
                flow=self.flow,
                trigger=self._trigger(context),
                request=self._request(context),
                host=socket.gethostname(),
                folder=str(folder),
                lease_seconds=LEASE_SECONDS,
            )
            try:
                module = job_module(Path(self.application))
                pid = start_detached(module, shorten(arguments, folder), environment, folder)
            except Exception as error:  # Also of the folder, whose disk may be full.
                shutil.rmtree(folder, ignore_errors=True)
                # If it runs after all and only the host's answer was lost, it ends itself.
                ledger.drivers.cancel(driver)
                # Else the next attempt would wait for it.
                ledger.drivers.end(driver, exit_code=1, report=None)
                if not isinstance(error, NoDriverHostError):
                    raise
                _log.warning("The task is not deferred and keeps its worker slot: %s", error)
                return
            _log.info(
                "The driver host runs the driver of run %s as process %d; its log is in the folder %s. The task waits "
                "in the triggerer.",
                driver,
                pid,
                folder,
            )
            self._defer_until_end_of(driver, context, ledger)

    def _wait_for_earlier(self, runs: DriverRow, context: Context, ledger: Ledger) -> None:
        """Defer the task until a driver has ended that an earlier attempt has started."""
        then = (
            "reports its result"
            if runs.cancelled_at is None and self._is_for(runs, context)
            else "copies what is left then"
        )
        _log.info(
            "Driver %s of %s, started at %s on %s, still copies: this attempt waits for its end, and %s.",
            runs.id,
            runs.trigger,
            f"{runs.started_at:%Y-%m-%dT%H:%M:%SZ}",
            runs.host,
            then,
        )
        self._defer_until_end_of(runs.id, context, ledger)

    def _defer_until_end_of(self, driver: str, context: Context, ledger: Ledger) -> None:
        ledger.drivers.wait(driver, str(context["ti"].id))
        self._waits_for = driver
        if self._has_ended(context):
            # Airflow refuses to defer such a task, so no trigger would cancel the driver.
            ledger.drivers.cancel(driver)
            raise AirflowException(f"the task was ended before it could wait for driver {driver}, which is cancelled.")
        # It imports the triggerer's classes.
        from mirror_lib.airflow.spark import DriverTrigger

        trigger = DriverTrigger(driver=driver, flow=self.flow, config_path=self.config_path)
        self.defer(trigger=trigger, method_name=self.resume.__name__)

    def _has_ended(self, context: Context) -> bool:
        """True if Airflow has ended the task: marked, cleared, deleted. It kills it only with the next heartbeat."""
        if self._is_killed:
            return True
        try:
            return task_state(context, self.task_id) != _RUNNING
        except AirflowRuntimeError as error:
            _log.warning("Airflow does not return the state of the task: %s", error)
            return False

    def _is_for(self, row: DriverRow, context: Context) -> bool:
        """True if a driver was started for this DAG run, with the same choices."""
        return (row.trigger, row.request) == (self._trigger(context), self._request(context))

    @contextmanager
    def _opened_ledger(self) -> Iterator[Ledger]:
        with task_secrets():
            config = load(Path(self.config_path))
        self._ledger_url = ledger_url(config)
        with open_ledger(config) as ledger:
            yield ledger

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
        elapsed = _elapsed_seconds(context)
        return replace(self._arguments(context), report=report, elapsed_seconds=elapsed).command_line()

    def _arguments(self, context: Context) -> JobArguments:
        choices = TriggerChoices.from_params(context["params"])
        return JobArguments(
            config=Path(self.config_path),
            flow=self.flow,
            trigger=self._trigger(context),
            topics=choices.topics,
            tasks=choices.tasks,
            max_seconds=choices.max_seconds,
            poll_seconds=choices.poll_seconds,
            dry_run=choices.dry_run,
            gaps=choices.gaps,
            bytes_per_second=choices.bytes_per_second,
        )

    def _request(self, context: Context) -> str:
        return "\n".join(self._arguments(context).command_line())

    @staticmethod
    def _trigger(context: Context) -> str:
        return trigger_text(context["dag"].dag_id, context["run_id"])

    def _log_plan(self, report: JobReport) -> None:
        if report.dry_run:
            _log.info("Dry run: nothing was changed. The log of the report task shows the plan.")


def _elapsed_seconds(context: Context) -> float | None:
    """Return the seconds that earlier attempts have used since the start of the DAG run, from which its timeout counts.

    None in the first attempt: a new limit then begins with the copy.
    """
    run, attempt = context.get("dag_run"), getattr(context["ti"], "try_number", 1)
    if run is None or run.start_date is None or attempt <= 1:
        return None
    return max(float((datetime.now(UTC) - run.start_date).total_seconds()), 0.0)
