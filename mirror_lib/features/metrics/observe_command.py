"""`mirror observe`: observe a flow and record its lag in the ledger."""

from __future__ import annotations

from math import isinf

import typer

from mirror_lib.cli import FlowCommand, Output, begin_with, capped_table, flow_command, megabytes
from mirror_lib.features.metrics.observation import FlowObserved, observe_flow
from mirror_lib.ledger.observed_rows import PartitionObservationRow
from mirror_lib.past_runs.outlooks import duration
from mirror_lib.planning.aborted_records import aborted_notes, copied_transactions

_COLUMNS = (
    "topic",
    "partition",
    "lag (records)",
    "MB",
    "since",
    "caught up in",
    "retention may delete in",
    "outlook",
    "reason",
)


app = typer.Typer()


@app.command()
@begin_with(flow_command)
def observe(command: FlowCommand) -> None:
    """Read both clusters once and store the lag of the flow in the ledger, for `mirror metrics` and the page.

    Every run does the same at its end. Changes nothing on the clusters. Exit code 3 if a partition is stalled.
    """
    with command.ledger() as ledger:
        seen = observe_flow(command.settings, ledger)
        copied = copied_transactions(ledger, command.settings.flow)
    show_observed(command.output, seen)
    for note in aborted_notes(command.settings.flow, copied):
        command.output.note(f"Warning: {note}")
    command.output.document({"copied_transactions": [each.to_dict() for each in copied]})
    command.output.exit_code = 3 if seen.flow.stalled else 0


def show_observed(output: Output, seen: FlowObserved) -> None:
    """Show the observation: a line for each partition that is lagging or stalled."""
    lagging = [row for row in seen.partitions if row.records_behind or row.reason is not None]
    lagging.sort(key=lambda row: (row.reason is None, -row.records_behind, row.topic, row.partition))
    capped_table(output, "lagging_partitions", _COLUMNS, [_cells(row) for row in lagging])
    flow = seen.flow
    output.values(
        "flow",
        {
            "flow": flow.flow,
            "observed": flow.observed_at.isoformat(sep=" ", timespec="seconds"),
            "partitions": flow.partitions,
            "lagging partitions": flow.lagging,
            "stalled partitions": flow.stalled,
            "lag (records)": flow.records_behind,
            "lag (MB)": None if flow.bytes_behind is None else megabytes(flow.bytes_behind),
            "lag (seconds)": flow.seconds_behind,
            "caught up in": _duration(flow.catch_up_seconds),
            "retention may delete in": _duration(flow.headroom_seconds),
            "outlook": flow.outlook,
        },
    )
    output.document({"observed": seen.to_dict()})


def _cells(row: PartitionObservationRow) -> tuple[object, ...]:
    return (
        row.topic,
        row.partition,
        row.records_behind,
        None if row.bytes_behind is None else megabytes(row.bytes_behind),
        None if row.behind_since is None else row.behind_since.isoformat(sep=" ", timespec="seconds"),
        _duration(row.catch_up_seconds),
        _duration(row.headroom_seconds),
        row.outlook,
        row.reason or row.detail,
    )


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return "never" if isinf(seconds) else duration(seconds)
