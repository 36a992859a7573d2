"""`mirror spark`: what Spark needs to run the jobs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli.output import JsonOption, report_errors
from mirror_lib.spark import (
    CLASS_ARCHIVE_VARIABLE,
    environment_settings,
    executor_environment,
    find_spark_home,
    job_file,
    spark_submit,
    write_archive,
    write_class_archive,
)

_app = typer.Typer(name="spark", help="Prepare what Spark needs to run the jobs.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.callback()
def _group() -> None:
    """Prepare what Spark needs to run the jobs."""


@_app.command()
def pack(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file; an existing file is overwritten.", metavar="PATH")
    ] = Path("mirror-environment.tar.gz"),
    as_json: JsonOption = False,
) -> None:
    """Pack the Python packages that executors need from this installation; nothing is downloaded.

    Executors unpack the archive themselves: use the settings that the command prints.
    """
    with report_errors(as_json) as output_of_command:
        environment = executor_environment()
        with output_of_command.progress(f"Packing {output.name}", total=environment.files) as progress:
            write_archive(environment, output, packed=progress.advance)
        output_of_command.table(
            "distributions",
            ("name", "version", "files", "bytes"),
            [(each.name, each.version, len(each.files), each.bytes) for each in environment.distributions],
        )
        output_of_command.values(
            "archive",
            {
                "path": str(output),
                "bytes": output.stat().st_size,
                "python": environment.python,
                "platform": environment.platform,
            },
        )
        output_of_command.values("settings", environment_settings(str(output.absolute())))


@_app.command("class-archive")
def class_archive(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file; an existing file is overwritten.", metavar="PATH")
    ] = Path("spark-classes.jsa"),
    as_json: JsonOption = False,
) -> None:
    """Write an archive of Spark's classes, with which drivers on this machine start in two thirds of their time.

    Set the variable that the command prints for Airflow's workers and for `mirror run`. Write the archive again after
    an update of Java or Spark: until then it is ignored.
    """
    with report_errors(as_json) as shown:
        path = output.absolute()
        with shown.progress(f"Starting Spark once for {output.name}"):
            write_class_archive(
                path,
                submit=spark_submit(find_spark_home(os.environ)),
                program=job_file().with_name("class_archive.py"),
            )
        shown.values("archive", {"path": str(path), "bytes": path.stat().st_size})
        shown.values("environment", {CLASS_ARCHIVE_VARIABLE: str(path)})
