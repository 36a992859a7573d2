"""The row of a detached driver in the ledger, kept by the driver itself: sign of life, cancellation, end."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from mirror_lib.copy.job.report import error_report, without_details
from mirror_lib.errors import LedgerError, MirrorError
from mirror_lib.features.warm_spark.tables import DetachedDrivers
from mirror_lib.ledger.store import Ledger

_log = logging.getLogger("mirror")
#: How often the row is renewed and the cancellation is read.
RENEWAL_SECONDS = 5.0
#: A driver whose row is not renewed for this time has died; the first renewal comes after its imports.
LEASE_SECONDS = 60.0
#: From SIGTERM to SIGKILL, as for a driver whose task is gone (`spark_jobs.entry`).
_GRACE_SECONDS = 15.0
_INTERRUPTED = 128 + signal.SIGTERM


class SignOfLife:
    """Renews the row of this process until it ends; a cancelled driver gets SIGTERM, as from a task that is killed."""

    def __init__(self, ledger: Ledger, driver: str) -> None:
        """Args:
        driver: the id of the row.
        """
        self._drivers = DetachedDrivers(ledger)
        self._driver = driver
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="sign-of-life", daemon=True)
        self._exit_code = 1
        self._report: Mapping[str, Any] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def ended_with(self, exit_code: int, report: Mapping[str, Any]) -> None:
        """Take the result of the job, for the row."""
        self._exit_code, self._report = exit_code, report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if isinstance(error, MirrorError):
            self.ended_with(error.exit_code, error_report(error))
        elif isinstance(error, KeyboardInterrupt):
            self._exit_code = _INTERRUPTED
        report = None if self._report is None else without_details(self._report)
        try:
            self._drivers.end(self._driver, exit_code=self._exit_code, report=report)
        except LedgerError as failure:
            # The task notices that the row is not renewed any more.
            _log.error("the end of driver %s was not recorded: %s", self._driver, failure)

    def _keep(self) -> None:
        is_logged = False
        while True:
            try:
                if self._drivers.renew(self._driver):
                    break
                is_logged = False
            except LedgerError as error:
                if not is_logged:
                    _log.warning("the row of driver %s was not renewed yet: %s", self._driver, error)
                is_logged = True
            if self._ended.wait(RENEWAL_SECONDS):
                return
        _log.error("driver %s was cancelled.", self._driver)
        os.kill(os.getpid(), signal.SIGTERM)
        if not self._ended.wait(_GRACE_SECONDS):
            os.kill(os.getpid(), signal.SIGKILL)
