"""The task that copies, deferred: a driver host runs the job, and the task waits in the triggerer for its end."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow import AirflowException, AirflowRuntimeError, Context, failing_at_once, task_secrets, task_state
from mirror_lib.airflow.flow.replicate_operator import ReplicateOperator, elapsed_seconds
from mirror_lib.airflow.spark.connection import is_deferrable, spark_master
from mirror_lib.airflow.spark.submission import shown_master
from mirror_lib.config.loader import load
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.job.report import JobReport
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.warm_spark.airflow.detached_driver import (
    FOLDER_PREFIX,
    discard_old_folders,
    is_driver_folder,
    show_log,
    start_detached,
)
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE
from mirror_lib.features.warm_spark.hosted_driver import NoDriverHostError
from mirror_lib.features.warm_spark.sign_of_life import LEASE_SECONDS
from mirror_lib.features.warm_spark.tables import DetachedDrivers
from mirror_lib.ledger.location import ledger_url, open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.spark.argument_file import shorten
from mirror_lib.spark.connect_server import is_connect
from mirror_lib.spark.submit import LOCAL_MASTER, job_module

if TYPE_CHECKING:
    from mirror_lib.features.warm_spark.tables import DriverRow

_log = logging.getLogger(__name__)
_REPORT = "report.json"
_RUNNING = "running"


def check_flow(flow: FlowConfig) -> tuple[str, ...]:
    """Check before the run that the copy of a deferrable flow can be deferred.

    Raises:
        ConfigurationError: it cannot.
    """
    if is_deferrable(flow):
        check_deferrable(flow.spark_connection)
    return ()


def check_deferrable(conn_id: str) -> None:
    """Check that a task can be deferred while its driver runs.

    Raises:
        ConfigurationError: it cannot; the message says why.
    """
    where = spark_master(conn_id)
    if where is None or not is_connect(where):
        found = (
            f"it names {shown_master(where)}"
            if where
            else f"Airflow has no such connection, so Spark runs here as {LOCAL_MASTER}"
        )
        raise ConfigurationError(
            f"mirror.airflow.deferrable needs a Spark Connect server as the connection {conn_id}, but {found}. A job "
            "of spark-submit ends with the task that started it.",
            action="Name a connection of type spark_connect (mirror.spark.connection), or set "
            "mirror.airflow.deferrable=false.",
        )
    if not os.environ.get(DRIVER_HOST_VARIABLE):
        raise ConfigurationError(
            f"mirror.airflow.deferrable needs a driver host, but {DRIVER_HOST_VARIABLE} is not set on this worker: "
            "without one, a driver ends with the task that started it.",
            action="Start `python -m spark_jobs.driver_host` next to each worker and set the variable for both, or set "
            "mirror.airflow.deferrable=false.",
        )


class DeferredReplicateOperator(ReplicateOperator):
    """Starts the Spark job of one flow at a driver host, and waits for its end without a worker slot.

    The job's state is in the ledger, which the triggerer and all workers share.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deferrable = True
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
            row = DetachedDrivers(ledger).find(driver)
            runs = DetachedDrivers(ledger).running(self.flow)
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
                DetachedDrivers(ledger).cancel(self._waits_for)
        elif self._driver is not None:
            super().on_kill()

    def _defer(self, context: Context, environment: Mapping[str, str] | None) -> None:
        """Start the job at the driver host and defer the task; a dry run is too short for that.

        Raises:
            TaskDeferred: the task waits.
            ConfigurationError: the task cannot be deferred here.
            AirflowException: Airflow has ended the task meanwhile.
        """
        if context["params"].get("dry_run"):
            return
        check_deferrable(self.spark_conn_id)
        assert environment is not None
        with self._opened_ledger() as ledger:
            if (runs := DetachedDrivers(ledger).running(self.flow)) is not None:
                self._wait_for_earlier(runs, context, ledger)
            discard_old_folders()
            folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
            driver = str(uuid.uuid4())
            arguments = replace(
                self._arguments(context),
                run_id=driver,
                report=folder / _REPORT,
                elapsed_seconds=elapsed_seconds(context),
                detached=True,
            ).command_line()
            DetachedDrivers(ledger).begin(
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
                DetachedDrivers(ledger).cancel(driver)
                # Else the next attempt would wait for it.
                DetachedDrivers(ledger).end(driver, exit_code=1, report=None)
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
        DetachedDrivers(ledger).wait(driver, str(context["ti"].id))
        self._waits_for = driver
        if self._has_ended(context):
            # Airflow refuses to defer such a task, so no trigger would cancel the driver.
            DetachedDrivers(ledger).cancel(driver)
            raise AirflowException(f"the task was ended before it could wait for driver {driver}, which is cancelled.")
        # It imports the triggerer's classes.
        from mirror_lib.features.warm_spark.airflow.driver_trigger import DriverTrigger

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

    def _request(self, context: Context) -> str:
        return "\n".join(self._arguments(context).command_line())
