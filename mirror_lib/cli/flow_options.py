"""The common part of commands about one flow: their options, and tables that stay readable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mirror_lib.cli.output import Output, json_rows
from mirror_lib.config.local_state import CONFIG_VARIABLE
from mirror_lib.errors import MirrorError

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig
    from mirror_lib.ledger.store import Ledger
    from mirror_lib.planning.record_paths import TopicPath


def one_file(path: Path | None) -> Path | None:
    """Check that the option names one file; the variable may name several, for Airflow."""
    if path is not None and os.pathsep in str(path) and not path.exists():
        raise typer.BadParameter(f"{path} is a list of files, which only Airflow takes ({CONFIG_VARIABLE}): name one.")
    return path


ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        help="The MirrorMaker 2 properties file.",
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        callback=one_file,
    ),
]
FlowOption = Annotated[str, typer.Option("--flow", help="The flow, as SOURCE->TARGET.")]
TopicsOption = Annotated[list[str] | None, typer.Option("--topics", help="Java regex of source topics; repeatable.")]
TasksOption = Annotated[
    int | None, typer.Option("--tasks", min=1, help="Maximum number of Spark tasks; default tasks.max.")
]
MasterOption = Annotated[str, typer.Option("--master", help="Spark master URL.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the plan; change nothing.")]
PartitionOption = Annotated[int | None, typer.Option("--partition", min=0, help="Only this partition.")]

#: The columns of every table of failures.
FAILURE_COLUMNS = ("topic", "partition", "reason", "what", "action")
#: A table of a hundred thousand rows is not readable; JSON has all of them.
ROWS_SHOWN = 50


def capped_table(output: Output, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: the first rows on the console, all in the JSON document; nothing if it is empty."""
    if not rows:
        output.document({name: []})
        return
    output.table(name, columns, rows[:ROWS_SHOWN])
    output.document({name: json_rows(columns, rows)})
    if len(rows) > ROWS_SHOWN:
        output.note(f"... and {len(rows) - ROWS_SHOWN:,} more; --json lists them all.")


def capped_errors(output: Output, errors: Sequence[MirrorError]) -> None:
    """Print the first errors; a command with possibly thousands of errors puts all of them in its JSON document."""
    for error in errors[:ROWS_SHOWN]:
        output.error(error)
    if len(errors) > ROWS_SHOWN:
        output.note(f"... and {len(errors) - ROWS_SHOWN:,} more errors; --json lists them all.")


def not_compared(output: Output, flow: FlowConfig, ledger: Ledger) -> None:
    """Compare the clusters with those of the ledger; print which of them did not respond.

    Raises:
        MirrorError: an alias names another cluster than the ledger belongs to.
    """
    from mirror_lib.identity.clusters import compare_reachable_clusters

    with output.progress(f"Comparing the clusters of {flow.flow}"):
        missing = compare_reachable_clusters(flow, ledger)
    output.document({"not_compared": list(missing)})
    for sentence in missing:
        output.note(sentence)


def show_paths(output: Output, name: str, paths: Iterable[TopicPath]) -> None:
    """Print which transforms each topic goes through, and why."""
    capped_table(output, name, ("topic", "path", "why"), [(each.topic, each.names, each.reason) for each in paths])


def megabytes(count: int) -> float:
    """Return bytes as MB, as tables show them."""
    return round(count / 1e6, 2)
