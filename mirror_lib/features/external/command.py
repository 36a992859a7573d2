"""`mirror airflow`: flows in an Airflow that does not have this package."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.errors import MirrorError

app = typer.Typer(
    name="airflow",
    help="Run flows in an Airflow of another environment (`mirror.airflow.execution = external`).",
    no_args_is_help=True,
)
_Files = Annotated[list[Path], typer.Option(help="A MirrorMaker 2 properties file; repeatable.", metavar="FILE")]


@app.command("dag-file")
def dag_file(
    config: _Files,
    mirror: Annotated[
        Path | None, typer.Option(help="Path of `mirror` on Airflow's machines; default: this program.", metavar="PATH")
    ] = None,
) -> None:
    """Print a DAG file for Airflow 2.10 or newer that needs no other package; put it into Airflow's DAG folder."""
    program = mirror or Path(sys.argv[0]).absolute()
    text = Path(__file__).with_name("dag_file.py").read_text(encoding="utf-8")
    files = [str(file.absolute()) for file in config]
    text = text.replace('MIRROR = "mirror"\n', f"MIRROR = {json.dumps(str(program))}\n", 1)
    typer.echo(text.replace("FILES = []\n", f"FILES = {json.dumps(files)}\n", 1), nl=False)


@app.command()
def describe(config: _Files) -> None:
    """Print the DAGs of the files as JSON, for the DAG file; no cluster is contacted."""
    _without_airflow()
    from mirror_lib.features.external.describe import describe as described
    from mirror_lib.features.external.describe import notes

    paths = [file.absolute() for file in config]
    try:
        found = described(paths)
        for note in notes(paths):
            typer.echo(note, err=True)
        typer.echo(json.dumps(found))
    except MirrorError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from error


@app.command()
def task(
    config: _Files,
    dag: Annotated[str, typer.Option(help="Id of the DAG.")],
    task: Annotated[str, typer.Option(help="Id of the task.")],
    pipes: Annotated[str, typer.Option(help="File descriptors of the Airflow task: for its answers, for questions.")],
) -> None:
    """Run one task of a DAG; only for the DAG file, which answers its questions through two pipes."""
    _without_airflow()
    from mirror_lib.features.external.channel import Channel, use_channel
    from mirror_lib.features.external.task import run_task

    try:
        answers, requests = (int(part) for part in pipes.split(","))
        with (
            os.fdopen(answers, encoding="utf-8") as incoming,
            os.fdopen(requests, "w", encoding="utf-8") as outgoing,
        ):
            channel = Channel(outgoing, incoming)
            use_channel(channel)
            code = run_task([file.absolute() for file in config], dag, task, channel)
            # The thread that reads waits for the other side, which waits for the end of this process.
            sys.stdout.flush()
            os._exit(code)
    except (ValueError, OSError) as error:
        typer.echo(f"--pipes {pipes}: an Airflow task starts this command: {error}.", err=True)
        raise typer.Exit(2) from error


def _without_airflow() -> None:
    from mirror_lib.airflow import use_stand_ins

    use_stand_ins("mirror_lib.features.external.stand_ins")
