"""The command line of the verification's Spark job; imports no client, since DAGs use it too."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.verify.model import VerifyMode


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
