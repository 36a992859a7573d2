"""The Spark job's arguments: the only module that knows their names, for the job and all that start it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TRIGGER = "spark-submit"
#: Lost records wait for an operator's decision; the other choices are two of `relay.gaps.Decision`.
ASK = "ask"
GAP_CHOICES = (ASK, "accept", "recopy")


@dataclass(frozen=True, slots=True)
class JobArguments:
    """Arguments of the job. None leaves the choice to the job or to the flow's configuration."""

    #: The MirrorMaker 2 properties file; absolute, since the job may run in another folder.
    config: Path
    #: The flow's name, `SOURCE->TARGET`.
    flow: str
    #: The run's id in the ledger, which refuses a known one; if empty, every start of the job gets its own.
    run_id: str = ""
    #: Who started the run, for the ledger.
    trigger: str = _TRIGGER
    #: Path of the report (`relay.job.report`).
    report: Path | None = None
    #: Java regexes of source topics; empty copies all topics of the flow.
    topics: tuple[str, ...] = ()
    #: Maximum number of Spark tasks.
    tasks: int | None = None
    #: Seconds after which no new round begins.
    max_seconds: float | None = None
    #: Seconds after which a run that has caught up checks for new records, until `max_seconds` are over.
    poll_seconds: float | None = None
    #: Seconds that earlier attempts have used of `mirror.run.longest.seconds`.
    elapsed_seconds: float | None = None
    dry_run: bool = False
    #: What to do about records that the source has lost; "ask" leaves their partitions to `mirror gaps`.
    gaps: str = ASK
    #: The backfill of the flow to run instead of the flow itself; it must be defined in the ledger.
    backfill: str = ""
    #: For a backfill: this run copies about as many bytes.
    max_bytes: int | None = None
    #: Maximum bytes per second to read from the source, over all tasks.
    bytes_per_second: int | None = None
    #: No task waits for the job's process: the ledger has a row with the run's id, to which the job reports.
    detached: bool = False

    @classmethod
    def parse(cls, argv: Sequence[str]) -> JobArguments:
        """Parse a command line without the program's name; an invalid one ends the process with exit code 2."""
        found = _parser().parse_args(argv)
        return cls(
            config=found.config,
            flow=found.flow,
            run_id=found.run_id,
            trigger=found.trigger,
            report=found.report,
            topics=tuple(found.topics),
            tasks=found.tasks,
            max_seconds=found.max_seconds,
            poll_seconds=found.poll_seconds,
            elapsed_seconds=found.elapsed_seconds,
            dry_run=found.dry_run,
            gaps=found.gaps,
            backfill=found.backfill,
            max_bytes=found.max_bytes,
            bytes_per_second=found.bytes_per_second,
            detached=found.detached,
        )

    def command_line(self) -> list[str]:
        """The inverse of `parse`. `=` keeps a regex with a leading dash from being parsed as an option."""
        given: list[tuple[str, object]] = [
            ("config", self.config),
            ("flow", self.flow),
            ("run-id", self.run_id or None),
            ("trigger", self.trigger),
            ("report", self.report),
            *(("topics", pattern) for pattern in self.topics),
            ("tasks", self.tasks),
            ("max-seconds", _seconds(self.max_seconds)),
            ("poll-seconds", _seconds(self.poll_seconds)),
            ("elapsed-seconds", _seconds(self.elapsed_seconds)),
            ("gaps", None if self.gaps == ASK else self.gaps),
            ("backfill", self.backfill or None),
            ("max-bytes", self.max_bytes),
            ("bytes-per-second", self.bytes_per_second),
        ]
        words = [f"--{name}={value}" for name, value in given if value is not None]
        flags = (("dry-run", self.dry_run), ("detached", self.detached))
        return [*words, *(f"--{name}" for name, is_set in flags if is_set)]


def _seconds(value: float | None) -> str | None:
    return None if value is None else str(value).removesuffix(".0")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="replicate.py", description="Copy the new records of one flow, then exit.")
    parser.add_argument("--config", required=True, type=Path, help="the MirrorMaker 2 properties file")
    parser.add_argument("--flow", required=True, help="the flow to run, as SOURCE->TARGET")
    parser.add_argument("--run-id", default="", help="id of the run in the ledger; default: a new one")
    parser.add_argument("--trigger", default=_TRIGGER, help="what started the run, for the ledger")
    parser.add_argument("--report", type=Path, default=None, help="write the report as JSON to this file")
    parser.add_argument("--topics", action="append", default=[], help="topic or regex to copy; repeatable")
    parser.add_argument("--tasks", type=int, default=None, help="maximum number of Spark tasks; default tasks.max")
    parser.add_argument("--max-seconds", type=float, default=None, help="start no new round after this many seconds")
    parser.add_argument(
        "--poll-seconds", type=float, default=None, help="poll interval in seconds after the run has caught up"
    )
    parser.add_argument(
        "--elapsed-seconds", type=float, default=None, help="seconds that earlier attempts of the run have used"
    )
    parser.add_argument(
        "--gaps", choices=GAP_CHOICES, default=ASK, help="resolution of gaps (records lost at the source)"
    )
    parser.add_argument("--backfill", default="", help="run this backfill of the flow instead; it must exist")
    parser.add_argument(
        "--max-bytes", type=int, default=None, help="maximum number of bytes to copy for the backfill, approximately"
    )
    parser.add_argument(
        "--bytes-per-second", type=int, default=None, help="maximum read rate from the source in bytes/s"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="plan only: write the plan to the report file, or print it"
    )
    parser.add_argument(
        "--detached", action="store_true", help="report to the driver's row in the ledger, which has the id of the run"
    )
    return parser
