"""The outcome of the Spark job for Airflow: the XCom value, and the error that decides about a retry."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from mirror_lib.copy.job.report import Failure, JobReport
from mirror_lib.errors import NOWHERE, ConfigurationError, MirrorError, ReplicationError, RunLockedError

#: XCom is not made for a hundred thousand rows; the ledger has them all.
_PROBLEMS_KEPT = 20
_PROBLEMS_SHOWN = 3
_EXIT_CODE = re.compile(r"Error code is: (-?\d+)")


class ReplicationRunError(MirrorError):
    """Some partitions were not copied; a retry copies the rest."""

    reason = "run-failed"
    retriable = True


def xcom_value(report: JobReport) -> dict[str, Any]:
    """Return the report as plain data for XCom; of problems and skipped records only the first, and how many."""
    problems = _problems(report)
    return {
        "exit_code": report.exit_code,
        "run_id": report.run_id,
        "dry_run": report.dry_run,
        "records": report.records,
        "bytes": report.bytes,
        "seconds": report.seconds,
        "failed": len(problems),
        "problems": [_text(problem) for problem in problems[:_PROBLEMS_KEPT]],
        "planned": [asdict(topic) for topic in report.planned],
        "skipped_records": report.skipped,
        "skipped_ranges": [str(each) for each in report.skipped_ranges[:_PROBLEMS_KEPT]],
        "skipped": skip_reason(report),
    }


def skip_reason(report: JobReport) -> str | None:
    """Return why the job did nothing, if that is not an error: another run of the flow is active and copies."""
    error = report.error
    if error is None or error.reason != RunLockedError.reason or not error.more.get("holder_lives"):
        return None
    return f"this run copied nothing: {error.what} The next run continues."


def exit_code_in(message: str) -> int | None:
    """Return the job's exit code from the provider's failure message (`SparkSubmitHook.submit`), None if it has none.

    Negative if a signal ended it.
    """
    match = _EXIT_CODE.search(message)
    return int(match.group(1)) if match else None


def failure_of(flow: str, exit_code: int | None, report: JobReport | None) -> MirrorError:
    """Return the typed error for a job that failed: it decides if Airflow retries (`retries.py`)."""
    problems = _problems(report) if report else ()
    shown = "; ".join(_text(problem) for problem in problems[:_PROBLEMS_SHOWN])
    not_shown = len(problems) - _PROBLEMS_SHOWN
    more = f" (and {not_shown} more)" if not_shown > 0 else ""
    if exit_code == ConfigurationError.exit_code:
        what = f"the Spark job of flow {flow} rejected its configuration: {shown or 'see the log above'}{more}"
        return ConfigurationError(what, where=NOWHERE, action="Check the file with `mirror config check`.")
    if exit_code == ReplicationError.exit_code:
        count = len(problems) or "some"
        what = f"flow {flow} needs a decision for {count} partition(s): {shown or 'see the log above'}{more}"
        return ReplicationError(what, where=NOWHERE, action="All other partitions were copied.")
    what = f"the Spark job of flow {flow} failed: {shown or without_report(exit_code)}{more}"
    return ReplicationRunError(what, where=NOWHERE, action="A retry copies the rest.")


def without_report(exit_code: int | None) -> str:
    """Return what is known of a job without a report."""
    if exit_code is None:
        return "it wrote no report, see the log above"
    if exit_code < 0:
        return (
            f"killed by signal {-exit_code} (9: by an operator, by Airflow, or by the kernel if memory is short), "
            "see the log "
            "above"
        )
    return f"exit code {exit_code}, see the log above"


def _problems(report: JobReport) -> tuple[Failure, ...]:
    found = (*report.failures, *report.deletions)
    return found if report.error is None else (report.error, *found)


def _text(failure: Failure) -> str:
    where = failure.where
    place = (
        "" if where.topic is None else where.topic if where.partition is None else f"{where.topic}-{where.partition}"
    )
    return f"[{failure.reason}] {place and place + ': '}{failure.what} {failure.action}".rstrip()
