"""The command line of the Spark job, apart from Spark itself: `spark_jobs/verify.py` brings the runner."""

from __future__ import annotations

import argparse
import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirror_lib.errors import MirrorError
from mirror_lib.ledger import load_flow_as_it_runs, open_ledger
from mirror_lib.private_files import write_private
from mirror_lib.verify.html import to_html
from mirror_lib.verify.model import Budget, VerifyMode
from mirror_lib.verify.report import VerifyReport
from mirror_lib.verify.run import VerifyOptions, VerifyRunner, verify_flow

_log = logging.getLogger("mirror")


@dataclass(frozen=True, slots=True)
class VerifyArguments:
    """Arguments of the job: the only place with their names, for the job and for everything that starts it."""

    #: The MirrorMaker 2 properties file; absolute, since the job may run in another folder.
    config: Path
    flow: str
    #: Id of the verification in the ledger; if empty, every start of the job gets its own.
    verification_id: str = ""
    mode: VerifyMode = VerifyMode.RECENT
    topics: tuple[str, ...] = ()
    tasks: int | None = None
    max_bytes: int | None = None
    max_seconds: float | None = None
    seed: int = 0
    #: Where the report is written, as JSON and as a page.
    report: Path | None = None
    html: Path | None = None

    @classmethod
    def parse(cls, argv: Sequence[str]) -> VerifyArguments:
        """Read a command line without the program's name; a malformed one ends the process with exit code 2."""
        found = _parser().parse_args(argv)
        return cls(
            config=found.config,
            flow=found.flow,
            verification_id=found.verification_id,
            mode=VerifyMode(found.mode),
            topics=tuple(found.topics),
            tasks=found.tasks,
            max_bytes=found.max_bytes,
            max_seconds=found.max_seconds,
            seed=found.seed,
            report=found.report,
            html=found.html,
        )

    def command_line(self) -> list[str]:
        """The inverse of `parse`. `=` keeps a regex that begins with a dash from being an option."""
        given: list[tuple[str, object]] = [
            ("config", self.config),
            ("flow", self.flow),
            ("verification-id", self.verification_id or None),
            ("mode", self.mode.value),
            *(("topics", pattern) for pattern in self.topics),
            ("tasks", self.tasks),
            ("max-bytes", self.max_bytes),
            ("max-seconds", self.max_seconds),
            ("seed", self.seed),
            ("report", self.report),
            ("html", self.html),
        ]
        return [f"--{name}={value}" for name, value in given if value is not None]


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="verify.py", description="Compare the target of one flow with its source.")
    parser.add_argument("--config", required=True, type=Path, help="the MirrorMaker 2 properties file")
    parser.add_argument("--flow", required=True, help="the flow to verify, as SOURCE->TARGET")
    parser.add_argument("--verification-id", default="", help="id in the ledger; default: a new one")
    parser.add_argument("--mode", choices=[mode.value for mode in VerifyMode], default=VerifyMode.RECENT.value)
    parser.add_argument("--topics", action="append", default=[], help="topic or regex to compare; repeatable")
    parser.add_argument("--tasks", type=int, default=None, help="maximum number of Spark tasks; default tasks.max")
    parser.add_argument("--max-bytes", type=int, default=None, help="maximum number of bytes to read from the source")
    parser.add_argument("--max-seconds", type=float, default=None, help="maximum duration of the comparison in seconds")
    parser.add_argument("--seed", type=int, default=0, help="seed of a sample")
    parser.add_argument("--report", type=Path, default=None, help="write the report as JSON to this file")
    parser.add_argument("--html", type=Path, default=None, help="write the report as an HTML page to this file")
    return parser
