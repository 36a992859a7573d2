"""`mirror owners`: for `billing.invoices` the owner is `billing`."""

from __future__ import annotations

from typing import Annotated

import typer

from mirror_lib.cli import Output, begin_with, report_errors

app = typer.Typer()


@app.command()
@begin_with(report_errors)
def owners(output: Output, topics: Annotated[list[str], typer.Argument(help="Names of topics.")]) -> None:
    """List the owners of topics by their names."""
    output.table("owners", ("topic", "owner"), [(topic, topic.partition(".")[0]) for topic in topics])
