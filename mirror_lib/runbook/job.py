"""The command line of the cutover's Spark job, apart from Spark itself: `spark_jobs/cutover.py` brings the engine."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirror_lib.config import load
from mirror_lib.errors import MirrorError
from mirror_lib.ledger import open_ledger
from mirror_lib.relay.job import error_report, write_report
from mirror_lib.runbook.context import CutoverContext, Engine
from mirror_lib.runbook.machine import Machine, Progress, Word
from mirror_lib.runbook.model import Step
from mirror_lib.runbook.opening import open_cutover
from mirror_lib.runbook.report import progress_text

_log = logging.getLogger("mirror")


@dataclass(frozen=True, slots=True)
class CutoverArguments:
    """Arguments of the job."""

    #: The properties file; absolute, since the job may run in another folder.
    config: Path
    #: The cutover's name.
    name: str
    #: Operator who runs it, for the ledger.
    by: str
    #: The last step to run; None runs all steps.
    until: Step | None = None
    #: How long to wait for the operator at each step that needs a confirmation.
    wait_seconds: float = 0.0
    report: Path | None = None
    #: The step that the operator confirms by this run.
    confirm: Step | None = None
    note: str | None = None

    @classmethod
    def parse(cls, argv: Sequence[str]) -> CutoverArguments:
        """Read a command line without the program's name; a malformed one ends the process with exit code 2."""
        found = _parser().parse_args(argv)
        until = None if found.until is None else Step(found.until)
        confirm = None if found.confirm is None else Step(found.confirm)
        return cls(
            found.config, found.name, found.by, until, found.wait_seconds, found.report, confirm, note=found.note
        )

    def command_line(self) -> list[str]:
        """The inverse of `parse`."""
        given: list[tuple[str, object]] = [
            ("config", self.config),
            ("name", self.name),
            ("by", self.by),
            ("until", None if self.until is None else self.until.value),
            ("wait-seconds", f"{self.wait_seconds:g}"),
            ("report", self.report),
            ("confirm", None if self.confirm is None else self.confirm.value),
            ("note", self.note),
        ]
        return [f"--{name}={value}" for name, value in given if value is not None]


def main(argv: Sequence[str], make_engine: Callable[[str], Engine]) -> int:
    """Run the job; return the exit code (0 done, 2 configuration, 3 needs an operator).

    Args:
        make_engine: given a name to show; starts nothing before it is used.
    """
    arguments = CutoverArguments.parse(argv)
    try:
        done = _run(arguments, make_engine)
    except MirrorError as error:
        _log.error("%s", error)
        _report(arguments, error_report(error))
        return error.exit_code
    _log.info("%s", progress_text(done))
    _report(arguments, {"exit_code": done.exit_code, **as_data(done)})
    return done.exit_code


def _run(arguments: CutoverArguments, make_engine: Callable[[str], Engine]) -> Progress:
    config = load(arguments.config)
    with open_ledger(config) as ledger:
        definition = open_cutover(ledger, arguments.name)
        context = CutoverContext(
            definition=definition,
            config=config,
            ledger=ledger,
            by=arguments.by,
            engine=make_engine(f"mirror cutover {definition.name}"),
            report_progress=lambda text: _log.info("cutover %s: %s", definition.name, text),
        )
        word = None
        if arguments.confirm is not None:
            word = Word(arguments.confirm, arguments.by, arguments.note or "")
        return Machine(context).run(until=arguments.until, wait_seconds=arguments.wait_seconds, word=word)


def as_data(done: Progress) -> dict[str, Any]:
    """Plain data for `--json`, the report file and XCom."""
    return {
        "cutover": done.definition.name,
        "flow": done.definition.flow,
        "state": done.state.value,
        "step": done.step.value,
        "now": done.present.state.value,
        "carried_out_by": None if done.present.carrier is None else done.present.carrier.by,
        "asks": None if done.present.state.question is None else done.present.state.question.value,
        "attempts": [attempt.to_dict() for attempt in done.attempts],
    }


def _report(arguments: CutoverArguments, content: Mapping[str, Any]) -> None:
    if arguments.report is not None:
        write_report(arguments.report, json.loads(json.dumps(content)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cutover.py", description="Run a cutover in one Spark session.")
    parser.add_argument("--config", required=True, type=Path, help="MirrorMaker 2 properties file")
    parser.add_argument("--name", required=True, help="Name of the cutover.")
    parser.add_argument("--by", required=True, help="User or DAG run, for the audit log.")
    parser.add_argument("--until", choices=[step.value for step in Step], help="Stop after this step.")
    parser.add_argument(
        "--wait-seconds", type=float, default=0.0, help="Maximum time to wait for an answer, in seconds."
    )
    parser.add_argument("--confirm", choices=[step.value for step in Step], help="Confirm this step.")
    parser.add_argument("--note", help="Note for the audit log, with --confirm.")
    parser.add_argument("--report", type=Path, help="Write the report to this file, as JSON.")
    return parser
