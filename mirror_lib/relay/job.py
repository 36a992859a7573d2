"""The command line of the Spark job, apart from Spark itself: `spark_jobs/replicate.py` brings the runner."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from mirror_lib.config.load import load
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.ledger.location import ledger_url
from mirror_lib.ledger.store import Ledger
from mirror_lib.relay.model import CopyJob, PartitionResult
from mirror_lib.relay.replicate import CopyRunner, RunOptions, RunReport, plan_flow, replicate

_log = logging.getLogger("mirror")


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The job's arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(prog="replicate.py", description="Copy one flow's new records, then stop.")
    parser.add_argument("--config", required=True, type=Path, help="the MirrorMaker 2 properties file")
    parser.add_argument("--flow", required=True, help="the flow to run, as SOURCE->TARGET")
    parser.add_argument("--run-id", default="", help="the run's id in the ledger; a new one by default")
    parser.add_argument("--trigger", default="spark-submit", help="who started the run, for the ledger")
    parser.add_argument("--topics", action="append", default=[], help="a topic or regex to copy; may be repeated")
    parser.add_argument("--tasks", type=int, default=None, help="Spark tasks at the most; default tasks.max")
    parser.add_argument("--max-seconds", type=float, default=None, help="begin no new round after this many seconds")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and change nothing")
    parser.add_argument("--report", type=Path, default=None, help="write the report as JSON to this file")
    return parser.parse_args(argv)


def main(argv: Sequence[str], make_runner: Callable[[str], CopyRunner]) -> int:
    """Run the job; returns the exit code (0 done, 1 partitions failed, 2 configuration, 3 needs a person)."""
    arguments = parse_arguments(argv)
    try:
        report = run_job(arguments, make_runner)
    except MirrorError as error:
        _log.error("%s", error)
        _write(arguments.report, {"exit_code": error.exit_code, "error": error.attributes()})
        return error.exit_code
    if report is None:
        return 0
    for failure in report.errors:
        _log.error("%s", failure)
    return report.exit_code


def run_job(arguments: argparse.Namespace, make_runner: Callable[[str], CopyRunner]) -> RunReport | None:
    """Load, plan, copy, commit; returns None for a dry run."""
    config = load(arguments.config)
    flow = find_flow(config, arguments.flow)
    options = RunOptions(
        run_id=arguments.run_id or str(uuid.uuid4()),
        trigger=arguments.trigger,
        topics=tuple(arguments.topics),
        tasks_max=arguments.tasks,
        max_seconds=arguments.max_seconds,
    )
    if arguments.dry_run:
        plan = plan_flow(flow, options)
        _write(arguments.report, {"exit_code": 0, "dry_run": True, "plan": plan.to_dict()})
        sys.stdout.write(json.dumps(plan.to_dict(), indent=2) + "\n")
        return None
    with Ledger.open(ledger_url(config)) as ledger:
        ledger.migrate()
        report = replicate(flow, ledger=ledger, runner=_on_demand(make_runner, str(flow.flow)), options=options)
    _write(arguments.report, report.to_dict())
    _log.info(
        "flow %s: %d records (%.1f MB) copied in %d round(s), %.1f s; %d partitions had nothing new, %d failed",
        report.flow,
        report.records,
        report.bytes / 1e6,
        report.rounds,
        report.seconds,
        report.idle,
        len(report.errors),
    )
    return report


def find_flow(config: MirrorConfig, text: str) -> FlowConfig:
    """The flow of a file, or an error that names those it has.

    Raises:
        ConfigurationError: the file has no such flow, or the flow is not enabled.
    """
    enabled = ", ".join(str(flow.flow) for flow in config.enabled_flows) or "none"
    try:
        flow = config.flow(text)
    except (KeyError, ValueError) as error:
        raise ConfigurationError(
            f"{config.path} has no flow {text!r}.", action=f"Its enabled flows are: {enabled}."
        ) from error
    if not flow.enabled:
        raise ConfigurationError(
            f"flow {text} of {config.path} is not enabled.",
            action=f"Set {text}.enabled=true; enabled flows are: {enabled}.",
        )
    return flow


def _on_demand(make_runner: Callable[[str], CopyRunner], flow: str) -> CopyRunner:
    """Starting Spark costs seconds: a run that finds nothing new never does."""
    made: list[CopyRunner] = []

    def run(job: CopyJob) -> list[PartitionResult]:
        if not made:
            made.append(make_runner(flow))
        return made[0](job)

    return run


def _write(path: Path | None, data: dict[str, object]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=2) + "\n")
