"""The command line of the Spark job, without Spark itself: `spark_jobs/replicate.py` passes the runner."""

from __future__ import annotations

import json
import logging
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mirror_lib.config.loader import load_flow
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.gaps.resolutions import Decision
from mirror_lib.copy.job.arguments import ASK, JobArguments
from mirror_lib.copy.job.report import error_report, plan_report, write_report
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import CopyRunner, RunOptions, RunReport
from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features, provided
from mirror_lib.ledger.location import existing_ledger, open_ledger
from mirror_lib.ledger.store import Ledger

_log = logging.getLogger("mirror")


def main(argv: Sequence[str], make_runner: Callable[[str], CopyRunner]) -> int:
    """Run the job; return the exit code (0 done, 1 partitions failed, 2 configuration, 3 needs an operator action)."""
    arguments = JobArguments.parse(argv)
    try:
        report = run_job(arguments, make_runner)
    except MirrorError as error:
        _log.error("%s", error)
        _report(arguments, error_report(error))
        return error.exit_code
    if report is None:
        return 0
    for failure in (*report.errors, *(problem.error for problem in report.deletions)):
        _log.error("%s", failure)
    return report.exit_code


def run_job(arguments: JobArguments, make_runner: Callable[[str], CopyRunner]) -> RunReport | None:
    """Load, plan, copy, commit; return None for a dry run."""
    config, flow = load_flow(arguments.config, arguments.flow)
    options = RunOptions(
        run_id=arguments.run_id or str(uuid.uuid4()),
        trigger=arguments.trigger,
        topics=arguments.topics,
        tasks_max=arguments.tasks,
        max_seconds=arguments.max_seconds,
        poll_seconds=arguments.poll_seconds,
        elapsed_seconds=arguments.elapsed_seconds or 0.0,
        losses=None if arguments.gaps == ASK else Decision(arguments.gaps),
        bytes_per_second=arguments.bytes_per_second,
    )
    if arguments.dry_run:
        with existing_ledger(config) or nullcontext() as known:
            plan = plan_flow(flow, options, known)
        _report(arguments, plan_report(plan))
        if arguments.report is None:
            sys.stdout.write(json.dumps(plan.to_dict(), indent=2) + "\n")
        return None
    with open_ledger(config) as ledger, _attended(arguments, ledger) as sign_of_life:
        report = _copy(arguments, flow, ledger, lambda: make_runner(str(flow.flow)), options)
        if sign_of_life is not None:
            sign_of_life.ended_with(report.exit_code, report.to_dict())
    _report(arguments, report.to_dict())
    _log.info(
        "flow %s: %d records (%.1f MB) copied in %d round(s), %.1f s; %d partitions idle, %d failed",
        report.flow,
        report.records,
        report.bytes / 1e6,
        report.rounds,
        report.seconds,
        report.idle,
        len(report.errors),
    )
    return report


def _copy(
    arguments: JobArguments, flow: FlowConfig, ledger: Ledger, runner: Callable[[], CopyRunner], options: RunOptions
) -> RunReport:
    if not arguments.backfill:
        return replicate(flow, ledger=ledger, make_runner=runner, options=options)
    name, max_bytes = arguments.backfill, arguments.max_bytes
    for run in installed_features().at(Hook.BACKFILL):
        report: RunReport = run(flow, name, ledger=ledger, make_runner=runner, options=options, max_bytes=max_bytes)
        return report
    raise ConfigurationError(
        f"--backfill {name} needs the feature backfill, which cannot be used here.",
        where=Where(flow=str(flow.flow)),
        action="`mirror features` shows why.",
    )


def _attended(arguments: JobArguments, ledger: Ledger) -> AbstractContextManager[Any]:
    if not arguments.detached:
        return nullcontext()
    attended: AbstractContextManager[Any] = provided(Hook.DETACHED, by="warm_spark")(ledger, arguments.run_id)
    return attended


def _report(arguments: JobArguments, content: Mapping[str, Any]) -> None:
    if arguments.report is not None:
        write_report(arguments.report, content)
