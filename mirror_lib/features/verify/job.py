"""The command line of the Spark job, apart from Spark itself: `spark_jobs/verify.py` brings the runner."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mirror_lib.errors import MirrorError
from mirror_lib.features.verify.html import to_html
from mirror_lib.features.verify.job_arguments import VerifyArguments
from mirror_lib.features.verify.model import Budget
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.run import VerifyOptions, VerifyRunner, verify_flow
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from mirror_lib.ledger.location import open_ledger
from mirror_lib.private_files import write_private

_log = logging.getLogger("mirror")


def main(argv: Sequence[str], make_runner: Callable[[str], VerifyRunner]) -> int:
    """Run the job; returns the exit code (0 equal, 1 could not be verified, 2 configuration, 3 different)."""
    arguments = VerifyArguments.parse(argv)
    try:
        report = run_job(arguments, make_runner)
    except MirrorError as error:
        _log.error("%s", error)
        _write(arguments.report, {"exit_code": error.exit_code, "error": error.attributes()})
        return error.exit_code
    for verdict in report.verdicts:
        if verdict.verdict != "equal":
            _log.error(
                "%s: %s, %d differences %s",
                verdict.source,
                verdict.verdict.value,
                verdict.difference_count,
                verdict.detail or "",
            )
    _log.info("flow %s: %s", report.flow, report.sentence)
    return report.exit_code


def run_job(arguments: VerifyArguments, make_runner: Callable[[str], VerifyRunner]) -> VerifyReport:
    """Load, plan, compare, store."""
    config, flow = load_flow_as_it_runs(arguments.config, arguments.flow)
    options = VerifyOptions(
        verification_id=arguments.verification_id or str(uuid.uuid4()),
        topics=arguments.topics,
        mode=arguments.mode,
        budget=Budget(arguments.max_bytes, arguments.max_seconds),
        seed=arguments.seed,
        tasks_max=arguments.tasks,
    )
    with open_ledger(config) as ledger:
        report = verify_flow(flow, ledger=ledger, make_runner=lambda _: make_runner(str(flow.flow)), options=options)
    _write(arguments.report, report.to_dict())
    if arguments.html is not None:
        arguments.html.parent.mkdir(parents=True, exist_ok=True)
        write_private(arguments.html, to_html(report))
    return report


def _write(path: Path | None, content: Mapping[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps(content, indent=2) + "\n")
