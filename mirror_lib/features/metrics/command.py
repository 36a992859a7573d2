"""`mirror metrics`: the state of all flows in the ledger, in Prometheus' format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli import ConfigOption, JsonOption, report_errors
from mirror_lib.config.loader import load
from mirror_lib.config.secrets.lookup_context import without_lookups
from mirror_lib.features.metrics.prometheus import render_metrics
from mirror_lib.features.metrics_file import write_metrics_file
from mirror_lib.ledger.location import open_ledger

app = typer.Typer()


@app.command()
def metrics(
    config: ConfigOption,
    textfile: Annotated[
        Path | None,
        typer.Option(
            help="Output file for node_exporter's textfile collector, ending in .prom; default stdout.", metavar="PATH"
        ),
    ] = None,
    worst_partitions: Annotated[
        int,
        typer.Option(
            min=0, max=1000, help="Number of partitions to report for each flow, those with the highest lag first."
        ),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Print metrics of all flows in Prometheus text format. Reads only the ledger."""
    with report_errors(as_json) as output:
        with without_lookups():
            file = load(config)
        with open_ledger(file) as ledger:
            text = render_metrics(ledger, file.enabled_flows, worst_partitions=worst_partitions)
        if textfile is not None:
            write_metrics_file(textfile, text)
            output.document({"textfile": str(textfile)})
        elif as_json:
            output.document({"metrics": text.decode()})
        else:
            typer.echo(text, nl=False)
