"""What commands about one flow have in common: their options, reading the flow, and tables that stay readable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mirror_lib.cli.output import Output

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig, MirrorConfig
    from mirror_lib.topology.selection import FlowTopology

ConfigOption = Annotated[Path, typer.Option("--config", help="The MirrorMaker 2 properties file.", metavar="FILE")]
FlowOption = Annotated[str, typer.Option("--flow", help="The flow, as SOURCE->TARGET.")]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topics", help="Only source topics that match this Java regex; may be given several times."),
]
TasksOption = Annotated[int | None, typer.Option("--tasks", min=1, help="Spark tasks at the most; default tasks.max.")]

#: The columns of every table of failures.
FAILURE_COLUMNS = ("topic", "partition", "reason", "what", "what to do")
#: Of a hundred thousand rows nobody reads more than these; JSON has all of them.
ROWS_SHOWN = 50


def read_flow(file: Path, flow: str) -> tuple[MirrorConfig, FlowConfig]:
    """The file and one enabled flow of it.

    Raises:
        ConfigurationError: the file cannot be used, or has no such enabled flow.
    """
    from mirror_lib.config.load import load
    from mirror_lib.relay.job import find_flow

    config = load(file)
    return config, find_flow(config, flow)


def selected_topics(flow: FlowConfig, topics: Sequence[str] | None) -> FlowTopology:
    """What the flow selects, limited to the topics that a person asked for.

    Raises:
        ConfigurationError: a pattern is not a Java regex.
    """
    from mirror_lib.config.flow_topology import flow_topology

    topology = flow_topology(flow)
    return topology.include_only(topics) if topics else topology


def capped_table(
    output: Output, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], shown: int = ROWS_SHOWN
) -> None:
    """A table of which the console shows the first rows and the JSON document all; nothing when it is empty."""
    if not rows:
        output.document({name: []})
        return
    output.table(name, columns, rows[:shown])
    keys = [column.replace(" ", "_") for column in columns]
    output.document({name: [dict(zip(keys, row, strict=True)) for row in rows]})
    if len(rows) > shown:
        output.note(f"... and {len(rows) - shown:,} more; --json lists them all.")


def megabytes(count: int) -> float:
    """Bytes as MB, as tables show them."""
    return round(count / 1e6, 2)
