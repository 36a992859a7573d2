"""`mirror position`: show positions, and set where copying continues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from mirror_lib.cli import (
    FlowCommand,
    NoteOption,
    YesOption,
    begin_with,
    capped_errors,
    capped_table,
    command_group,
    flow_command,
    is_confirmed,
    person,
)
from mirror_lib.config.first_start import parse_first_start
from mirror_lib.config.model import FirstStart
from mirror_lib.counted import counted
from mirror_lib.features.repair.commands.decision_lock import locked_flow
from mirror_lib.features.repair.set_positions import apply_changes, plan_changes
from mirror_lib.identity.clusters import check_clusters
from mirror_lib.identity.ledger_positions import LedgerPositions
from mirror_lib.planning.flow_clusters import FlowClusters

app = command_group("position")

TopicOption = Annotated[str, typer.Option(help="Source topic.")]
AnyTopicOption = Annotated[str | None, typer.Option(help="Only this source topic.")]
PartitionsOption = Annotated[
    list[int] | None, typer.Option(min=0, help="Only this partition; repeatable. Default: all.")
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        help="Source offset of the next record to copy, earliest, latest, or a time such as 2026-01-31T00:00:00Z.",
    ),
]

_COLUMNS = ("topic", "partition", "next offset", "target offset", "state", "claim", "run", "leader epoch", "skipped")


@app.command()
@begin_with(flow_command)
def show(command: FlowCommand, topic: AnyTopicOption = None) -> None:
    """Show the positions stored on the target cluster; changes nothing."""
    output, settings = command.output, command.settings
    with FlowClusters.connect(settings) as clusters, output.progress("Reading the position topic"):
        snapshot = clusters.positions.read_all()
    rows = [
        (
            *source,
            each.offset + 1,
            each.target_offset,
            "MirrorMaker 2's" if each.state is None else each.state.value,
            each.claim,
            each.run_id,
            each.leader_epoch,
            len(each.skipped),
        )
        for source, stored in sorted(snapshot.positions.items())
        if topic in (None, source.topic)
        for each in (stored.position,)
    ]
    capped_table(output, "positions", _COLUMNS, rows)
    unreadable = [each.error for source, each in snapshot.unreadable.items() if topic in (None, source.topic)]
    capped_errors(output, unreadable)
    output.exit_code = 3 if unreadable else 0
    output.note(f"Flow {settings.flow}: {len(rows)} positions in {settings.offset_storage_topic}.")


@app.command("set")
@begin_with(flow_command)
def set_positions(
    command: FlowCommand,
    topic: TopicOption,
    to: ToOption,
    partition: PartitionsOption = None,
    note: NoteOption = None,
    yes: YesOption = False,
) -> None:
    """Set the source offset at which copying continues: a lower one copies records again, a higher one skips some.

    Shows which records would be skipped or copied again, and asks for confirmation.
    """
    _change(command, topic, partition or (), _parse_start(to), note, yes=yes)


@app.command()
@begin_with(flow_command)
def reset(
    command: FlowCommand,
    topic: TopicOption,
    partition: PartitionsOption = None,
    note: NoteOption = None,
    yes: YesOption = False,
) -> None:
    """Delete positions: the next run is a first start of these partitions (mirror.first.start).

    If the target has records, it stops with target-not-empty.
    """
    _change(command, topic, partition or (), None, note, yes=yes)


def _parse_start(text: str) -> FirstStart:
    try:
        start = parse_first_start(f"offset {text}" if text.strip().isdigit() else text)
    except ValueError as error:
        raise typer.BadParameter(f"must be {error}", param_hint="--to") from None
    if start is None:
        raise typer.BadParameter("must not be empty", param_hint="--to")
    return start


def _change(
    command: FlowCommand,
    topic: str,
    partitions: Sequence[int],
    start: FirstStart | None,
    note: str | None,
    *,
    yes: bool,
) -> None:
    output, settings = command.output, command.settings
    with locked_flow(command.file, settings) as (ledger, lease, clusters, run_id):
        check_clusters(settings, ledger, clusters.ids())
        with command.progress():
            in_ledger = LedgerPositions.read(ledger, settings.flow)
            planned = plan_changes(settings, clusters, topic, partitions, start, in_ledger=in_ledger, run_id=run_id)
        output.document({"changes": [each.to_dict() for each in planned], "done": 0})
        for each in planned:
            if each.error is None:
                output.note(str(each))
        failed = [each.error for each in planned if each.error is not None]
        capped_errors(output, failed)
        partitions_text = counted(len(planned), "partition")
        if failed:
            output.note("Nothing was changed.")
            output.exit_code = max(error.exit_code for error in failed)
        elif is_confirmed(output, f"Set the positions of {partitions_text}?", yes=yes):
            lease.check()
            apply_changes(settings, clusters, ledger, planned, by=person(), note=note, run_id=run_id)
            output.document({"done": len(planned)})
            output.note(f"Done for {partitions_text}; the decision is in the ledger (`mirror gaps list`).")
