"""`mirror spark class-archive`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli import Output, begin_with, report_errors
from mirror_lib.features.warm_spark.class_archive import write_class_archive
from mirror_lib.spark.class_archive import CLASS_ARCHIVE_VARIABLE
from mirror_lib.spark.submit import LOCAL_SETTINGS, find_spark_home, job_file, spark_submit

app = typer.Typer()


@app.command("class-archive")
@begin_with(report_errors)
def class_archive(
    shown: Output,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file; an existing file is overwritten.", metavar="PATH")
    ] = Path("spark-classes.jsa"),
) -> None:
    """Write an archive of Spark's classes, with which drivers on this machine start in two thirds of their time.

    Set the variable that the command prints for Airflow's workers and for `mirror run`. Write the archive again after
    an update of Java or Spark: until then it is ignored.
    """
    path = output.absolute()
    with shown.progress(f"Starting Spark once for {output.name}"):
        write_class_archive(
            path,
            submit=spark_submit(find_spark_home(os.environ)),
            program=job_file().with_name("class_archive.py"),
            settings=LOCAL_SETTINGS,
        )
    shown.values("archive", {"path": str(path), "bytes": path.stat().st_size})
    shown.values("environment", {CLASS_ARCHIVE_VARIABLE: str(path)})
