"""The Spark job's arguments: the only module that knows their names, for the job and all that start it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, get_args

from mirror_lib.spark.job_arguments import CommandLine

#: Lost records wait for an operator's decision; the other choices are two of `copy.gaps.Decision`.
ASK: Final = "ask"
GapChoice = Literal["ask", "accept", "recopy"]
GAP_CHOICES: tuple[str, ...] = get_args(GapChoice)


@dataclass(frozen=True, slots=True)
class JobArguments(CommandLine):
    """Arguments of the job. None leaves the choice to the job or to the flow's configuration."""

    program: ClassVar[str] = "replicate.py"
    description: ClassVar[str] = "Copy the new records of one flow, then exit."

    #: Absolute, since the job may run in another folder.
    config: Annotated[Path, "the MirrorMaker 2 properties file"]
    flow: Annotated[str, "the flow to run, as SOURCE->TARGET"]
    #: The ledger refuses a known one.
    run_id: Annotated[str, "id of the run in the ledger; default: a new one at each start"] = ""
    trigger: Annotated[str, "what started the run, for the ledger"] = "spark-submit"
    #: See `copy.job.report`.
    report: Annotated[Path | None, "write the report as JSON to this file"] = None
    topics: Annotated[tuple[str, ...], "Java regex of source topics to copy; repeatable; default: all topics"] = ()
    tasks: Annotated[int | None, "maximum number of Spark tasks; default tasks.max"] = None
    max_seconds: Annotated[float | None, "start no new round after this many seconds"] = None
    #: Until `max_seconds` are over.
    poll_seconds: Annotated[float | None, "poll interval in seconds after the run has caught up"] = None
    elapsed_seconds: Annotated[float | None, "seconds of mirror.run.longest.seconds that earlier attempts used"] = None
    dry_run: Annotated[bool, "plan only: write the plan to the report file, or print it"] = False
    gaps: Annotated[str, "resolution of gaps (records lost at the source)", GAP_CHOICES] = ASK
    backfill: Annotated[str, "run this backfill of the flow instead; it must be defined in the ledger"] = ""
    max_bytes: Annotated[int | None, "maximum number of bytes to copy for the backfill, approximately"] = None
    bytes_per_second: Annotated[int | None, "maximum read rate from the source in bytes/s, over all tasks"] = None
    #: No task waits for the job's process.
    detached: Annotated[bool, "report to the driver's row in the ledger, which has the id of the run"] = False
