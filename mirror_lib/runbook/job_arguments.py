"""The command line of the cutover's Spark job; imports no client, since DAGs use it too."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.runbook.model import Step


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
