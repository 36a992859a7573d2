"""`mirror map`: show the stored exact offset map, and derive it again from the two logs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from mirror_lib.cli import (
    FlowCommand,
    Output,
    PartitionOption,
    TopicsOption,
    begin_with,
    capped_errors,
    capped_table,
    command_group,
    flow_command,
    not_compared,
    person,
)
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.features.repair.map_rebuild import Rebuilt, apply_rebuilt
from mirror_lib.features.repair.map_rebuild import rebuild as rebuild_maps
from mirror_lib.features.repair.map_rebuild_plan import RebuildPlan, plan_rebuild
from mirror_lib.identity.clusters import check_clusters
from mirror_lib.ledger.handovers import opposite_of
from mirror_lib.ledger.location import open_ledger
from mirror_lib.planning.flow_clusters import FlowClusters

app = command_group("map")

_SIZE_COLUMNS = (
    "topic",
    "partition",
    "segments",
    "records",
    "source first",
    "source next",
    "target first",
    "target next",
    "bytes",
    "bytes per million records",
)
_PLAN_COLUMNS = ("topic", "partition", "source from", "source to", "target", "target from", "target to", "end certain")
_REBUILT_COLUMNS = (
    "topic",
    "partition",
    "records",
    "same",
    "only in ledger",
    "only in logs",
    "contradicting",
    "only on source",
    "only on target",
    "ambiguous",
    "repeated",
    "to be written",
)


@app.command()
@begin_with(flow_command)
def show(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Show the mapped range of each partition and the size of its map in the ledger."""
    output, settings, topology = command.output, command.settings, command.topology(topics)
    with open_ledger(command.file) as ledger:
        not_compared(output, settings, ledger)
        # A topic that the flow has ever selected keeps its map; only the command's own patterns exclude some.
        chosen = topology.with_moved_topics()
        found = [size for size in ledger.map_sizes(str(settings.flow)) if not topics or chosen.replicates(size.topic)]
    rows = [
        (
            size.topic,
            size.partition,
            size.segments,
            size.records,
            size.source_first,
            size.source_next,
            size.target_first,
            size.target_next,
            size.bytes,
            round(size.bytes_per_million_records, 1),
        )
        for size in found
    ]
    capped_table(output, "partitions", _SIZE_COLUMNS, rows)
    records, stored = sum(size.records for size in found), sum(size.bytes for size in found)
    output.document({"flow": str(settings.flow), "records": records, "bytes": stored})
    output.note(f"{len(found):,} partitions, {records:,} records in {stored:,} bytes.")


@app.command()
@begin_with(flow_command)
def rebuild(
    command: FlowCommand,
    topics: TopicsOption = None,
    partition: PartitionOption = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write maps that differ to the ledger; default: show them.")
    ] = False,
) -> None:
    """Rebuild the map from both logs, and compare it with the ledger's map.

    Reads both logs from their start, twice. Exit code 3 if the logs of a partition do not match; all other partitions
    are still rebuilt.
    """
    output, settings = command.output, command.settings
    name, run_id = str(settings.flow), f"rebuild-{uuid.uuid4()}"
    with open_ledger(command.file) as ledger, ExitStack() as stack:
        if apply:
            # A run would append to a map that is about to be replaced.
            lock = hold_lock(ledger, flow=name, run_id=run_id, lease_seconds=settings.run_lease_seconds)
            lease = stack.enter_context(lock)
        clusters = stack.enter_context(FlowClusters.connect(settings))
        check_clusters(settings, ledger, clusters.ids())
        topology = command.topology(topics)
        plans = plan_rebuild(settings, topology, clusters, partition=partition)
        if not plans:
            topology.refuse_empty_choice(clusters.source_admin.list_topics())
            output.note("No selected partition was copied, so there is no map to rebuild.")
        _show_plans(output, plans)
        total = sum(plan.offsets for plan in plans)
        with output.progress(f"Reading the logs of {name}", total) as progress:
            opposite = opposite_of(command.file, settings)
            found = rebuild_maps(settings, plans, clusters, ledger, progress.advance, opposite=opposite)
        _show_rebuilt(output, found)
        written = 0
        if apply:
            lease.check()
            written = apply_rebuilt(settings, clusters, ledger, found, run_id=run_id, by=person())
        output.document({"written": written})
        changes = sum(each.changes for each in found)
        output.note(
            f"{written:,} maps were written."
            if apply
            else f"{changes:,} of {len(found):,} maps differ; nothing was changed. --apply writes them."
        )


def _show_plans(output: Output, plans: Sequence[RebuildPlan]) -> None:
    cells = [
        (
            *plan.source,
            plan.source_start,
            plan.source_end,
            plan.target.topic,
            plan.target_start,
            plan.target_end,
            plan.certain_end,
        )
        for plan in plans
    ]
    capped_table(output, "logs", _PLAN_COLUMNS, cells)


def _show_rebuilt(output: Output, found: Sequence[Rebuilt]) -> None:
    cells = []
    for each in found:
        if each.match is not None and each.difference is not None:
            match, difference = each.match, each.difference
            cells.append(
                (
                    *each.plan.source,
                    match.columns.records,
                    difference.same,
                    difference.only_in_ledger,
                    difference.only_in_logs,
                    difference.contradicting,
                    match.only_on_source,
                    match.only_on_target,
                    match.ambiguous,
                    each.repeated,
                    each.changes,
                )
            )
    capped_table(output, "partitions", _REBUILT_COLUMNS, cells)
    errors = [each.error for each in found if each.error is not None]
    capped_errors(output, errors)
    output.document({"errors": [error.attributes() for error in errors]})
    output.exit_code = max((error.exit_code for error in errors), default=0)
