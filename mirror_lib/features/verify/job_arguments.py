"""The command line of the verification's Spark job; imports no client, since DAGs use it too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.spark.job_arguments import CommandLine


@dataclass(frozen=True, slots=True)
class VerifyArguments(CommandLine):
    """Arguments of the job: the only place with their names, for the job and for everything that starts it."""

    program: ClassVar[str] = "verify.py"
    description: ClassVar[str] = "Compare the target of one flow with its source."

    #: Absolute, since the job may run in another folder.
    config: Annotated[Path, "the MirrorMaker 2 properties file"]
    flow: Annotated[str, "the flow to verify, as SOURCE->TARGET"]
    verification_id: Annotated[str, "id in the ledger; default: a new one at each start"] = ""
    mode: Annotated[VerifyMode, "what is compared"] = VerifyMode.RECENT
    topics: Annotated[tuple[str, ...], "Java regex of source topics to compare; repeatable"] = ()
    tasks: Annotated[int | None, "maximum number of Spark tasks; default tasks.max"] = None
    max_bytes: Annotated[int | None, "maximum number of bytes to read from the source"] = None
    max_seconds: Annotated[float | None, "maximum duration of the comparison in seconds"] = None
    seed: Annotated[int, "seed of a sample"] = 0
    report: Annotated[Path | None, "write the report as JSON to this file"] = None
    html: Annotated[Path | None, "write the report as an HTML page to this file"] = None
