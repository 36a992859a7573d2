"""The command line of the cutover's Spark job; imports no client, since DAGs use it too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from mirror_lib.features.cutover.model import Step
from mirror_lib.spark.job_arguments import CommandLine


@dataclass(frozen=True, slots=True)
class CutoverArguments(CommandLine):
    """Arguments of the job."""

    program: ClassVar[str] = "cutover.py"
    description: ClassVar[str] = "Run a cutover in one Spark session."

    #: Absolute, since the job may run in another folder.
    config: Annotated[Path, "the MirrorMaker 2 properties file"]
    name: Annotated[str, "name of the cutover"]
    by: Annotated[str, "user or DAG run, for the audit log"]
    until: Annotated[Step | None, "last step to run; default: all steps"] = None
    #: At each step that needs a confirmation.
    wait_seconds: Annotated[float, "maximum time to wait for the operator's answer, in seconds"] = 0.0
    report: Annotated[Path | None, "write the report as JSON to this file"] = None
    confirm: Annotated[Step | None, "confirm this step by this run"] = None
    note: Annotated[str | None, "note for the audit log, with --confirm"] = None
