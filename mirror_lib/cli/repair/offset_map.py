"""`mirror map`: show the stored exact offset map, and derive it again from the two logs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli.flow_options import (
    ConfigOption,
    FlowOption,
    TopicsOption,
    capped_errors,
    capped_table,
    not_compared,
)
from mirror_lib.cli.output import JsonOption, Output, report_errors
from mirror_lib.config import flow_topology
from mirror_lib.ledger import load_flow_as_it_runs, open_ledger, opposite_of
from mirror_lib.relay import hold_lock
from mirror_lib.relay.planning import FlowClusters
from mirror_lib.relay.repair import RebuildPlan, Rebuilt
from mirror_lib.sync import check_clusters

_app = typer.Typer(name="map", help="The offset map of a flow.", no_args_is_help=True)

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
    "to be written",
)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.command()
def show(config: ConfigOption, flow: FlowOption, topics: TopicsOption = None, as_json: JsonOption = False) -> None:
    """Show the mapped range of each partition and the size of its map in the ledger."""

    with report_errors(as_json) as output:
        file, settings = load_flow_as_it_runs(config, flow)
        topology = flow_topology(settings, topics or ())
        with open_ledger(file) as ledger:
            not_compared(output, settings, ledger)
            # A topic that the flow has ever selected keeps its map; only the command's own patterns exclude some.
            found = [
                size for size in ledger.map_sizes(str(settings.flow)) if not topics or topology.replicates(size.topic)
            ]
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


@_app.command()
def rebuild(
    config: ConfigOption,
    flow: FlowOption,
    topics: TopicsOption = None,
    partition: Annotated[int | None, typer.Option("--partition", min=0, help="Only this partition.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write maps that differ to the ledger; default: show them.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rebuild the map from both logs, and compare it with the ledger's map.

    Reads both logs from their start, twice. Exit code 3 if the logs of a partition do not match; all other partitions
    are still rebuilt.
    """
    with report_errors(as_json) as output:
        _rebuild(output, config, flow, topics or (), partition, apply=apply)


def _rebuild(
    output: Output, config: Path, flow: str, topics: Sequence[str], partition: int | None, *, apply: bool
) -> None:
    from mirror_lib.relay.repair import apply_rebuilt, plan_rebuild, rebuild

    file, settings = load_flow_as_it_runs(config, flow)
    name, run_id = str(settings.flow), f"rebuild-{uuid.uuid4()}"
    with open_ledger(file) as ledger, ExitStack() as stack:
        if apply:
            # A run would append to a map that is about to be replaced.
            lock = hold_lock(ledger, flow=name, run_id=run_id, lease_seconds=settings.run_lease_seconds)
            lease = stack.enter_context(lock)
        clusters = stack.enter_context(FlowClusters.connect(settings))
        check_clusters(settings, ledger, clusters.ids())
        topology = flow_topology(settings, topics)
        plans = plan_rebuild(settings, topology, clusters, partition=partition)
        if not plans:
            topology.refuse_empty_choice(clusters.source_admin.list_topics())
            output.note("No selected partition was copied, so there is no map to rebuild.")
        _show_plans(output, plans)
        total = sum(plan.offsets for plan in plans)
        with output.progress(f"Reading the logs of {name}", total) as progress:
            opposite = opposite_of(file, settings)
            found = rebuild(settings, plans, clusters, ledger, progress.advance, opposite=opposite)
        _show_rebuilt(output, found)
        written = 0
        if apply:
            lease.check()
            written = apply_rebuilt(settings, ledger, found, run_id=run_id)
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
                    each.changes,
                )
            )
    capped_table(output, "partitions", _REBUILT_COLUMNS, cells)
    errors = [each.error for each in found if each.error is not None]
    capped_errors(output, errors)
    output.document({"errors": [error.attributes() for error in errors]})
    output.exit_code = max((error.exit_code for error in errors), default=0)
