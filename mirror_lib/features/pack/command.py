"""`mirror spark pack`: the packages of Spark's executors as one archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli import Output, begin_with, report_errors
from mirror_lib.features.pack.executor_archive import environment_settings, executor_environment, write_archive

app = typer.Typer()


@app.command()
@begin_with(report_errors)
def pack(
    output_of_command: Output,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file; an existing file is overwritten.", metavar="PATH")
    ] = Path("mirror-environment.tar.gz"),
) -> None:
    """Pack the Python packages that executors need from this installation; nothing is downloaded.

    Executors unpack the archive themselves: use the settings that the command prints.
    """
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
