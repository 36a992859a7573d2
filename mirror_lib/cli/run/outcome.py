"""The outcome of `mirror run` after the job's end: its report, or an error in its place, and a consistent ledger."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from mirror_lib.cli.run.spark_submit import RunFiles
from mirror_lib.copy.job.report import Failure, JobReport
from mirror_lib.errors import LedgerError, MirrorError, SparkJobError
from mirror_lib.ledger.rows import RunState
from mirror_lib.ledger.store import Ledger
from mirror_lib.processes import tail

#: Lines of the log that are searched for errors, and that are shown.
_LOG_READ, _ERRORS, _LOG_LINES = 2_000, 3, 12
_FRAME = re.compile(r"\s+at |\s*$|[\w.$/<>]+\([\w.$ ]+(:\d+)?\)$")


class RunFailedError(MirrorError):
    """The job failed as a whole; reason, text and exit code are those that it reported."""

    def __init__(self, failure: Failure, exit_code: int) -> None:
        super().__init__(failure.what, where=failure.where, action=failure.action)
        self._more = failure.more
        # Class variables elsewhere.
        self.reason = failure.reason  # type: ignore[misc]
        self.exit_code = exit_code  # type: ignore[misc]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the job reported."""
        return {**super().attributes(), **self._more}


def read_report(files: RunFiles, exit_code: int) -> JobReport:
    """Return the report of a run that was carried out.

    Args:
        exit_code: of the job's process.

    Raises:
        RunFailedError: the job failed as a whole.
        SparkJobError: there is no report: Spark failed, or the job was ended.
    """
    report = JobReport.read(files.report)
    if report is None:
        raise SparkJobError(
            f"the Spark job ended with exit code {exit_code} and without a report. From its log:\n"
            f"{_excerpt(files.log)}",
            action=f"See {files.log} for the cause. Nothing is lost: a repeated command continues at the last stored "
            "position.",
        )
    if report.error is not None:
        raise RunFailedError(report.error, report.exit_code)
    return report


def _excerpt(log: Path) -> str:
    """Return the last errors in a log, then its last lines; without Java's stack frames, which would be all of them."""
    lines = [line for line in tail(log, _LOG_READ).splitlines() if not _FRAME.match(line)]
    end = lines[-_LOG_LINES:]
    errors = [line for line in lines[:-_LOG_LINES] if " ERROR " in line][-_ERRORS:]
    return "\n".join([*errors, *(["..."] if errors else []), *end])


def close_abandoned(ledger: Ledger, run_id: str) -> None:
    """Record the failure of a run whose job is gone and could not record it itself; nothing to do for any other.

    Errors of the ledger are ignored: there is a more important error to report.
    """
    with suppress(LedgerError):
        row = ledger.run(run_id)
        if row is not None and row.state == RunState.RUNNING:
            error = SparkJobError(
                "the Spark job ended before its run.",
                action="Nothing is lost: the next run continues at the last stored position (repeat a backfill).",
            )
            ledger.finish_run(run_id, state=RunState.FAILED.value, error=error.attributes())
