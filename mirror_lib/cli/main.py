"""The `mirror` command.

Exit codes: 0 done, 1 work failed, 2 wrong usage or configuration, 3 an operator is needed.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from mirror_lib.cli.commands import CommandGroup
from mirror_lib.former_names import present_option
from mirror_lib.printable_errors import printable_error
from mirror_lib.printable_logs import make_output_printable

_DISTRIBUTION = "batch-mirror"

app = typer.Typer(
    name="mirror",
    cls=CommandGroup,
    help="Replicate Kafka topics in scheduled batches, configured by MirrorMaker 2's properties file.",
    no_args_is_help=True,
    context_settings={"token_normalize_func": present_option},
    # Local variables hold passwords of clusters.
    pretty_exceptions_show_locals=False,
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(f"mirror {version(_DISTRIBUTION)}")
    except PackageNotFoundError:
        typer.echo("mirror (not installed)")
    raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Replicate Kafka topics in scheduled batches, configured by MirrorMaker 2's properties file."""


def main() -> None:
    """Run the command line and end the process."""
    make_output_printable()
    try:
        sys.exit(app())
    except Exception as error:
        # Typer shows exceptions itself.
        shown = printable_error(error)
    raise shown


if __name__ == "__main__":
    main()
