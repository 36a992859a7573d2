"""`mirror clusters`: the clusters that a flow's state belongs to, and the decision when an alias names another one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from mirror_lib.cli import FlowCommand, YesOption, begin_with, command_group, flow_command, is_confirmed, person
from mirror_lib.config.loader import load_flow
from mirror_lib.features.repair.cluster_change import ClusterDecision, apply_cluster_change, plan_cluster_change
from mirror_lib.features.repair.commands.decision_lock import locked_flow
from mirror_lib.identity.clusters import ledger_name
from mirror_lib.ledger.location import existing_ledger
from mirror_lib.sync.admins import flow_admins

app = command_group("clusters")

_COLUMNS = ("side", "alias", "cluster id", "in the ledger")


@app.command()
@begin_with(flow_command)
def show(command: FlowCommand) -> None:
    """Show the cluster ids of a flow and those stored in the ledger. Exit code 3 if they differ."""
    output = command.output
    file, settings = load_flow(command.config, command.flow)
    with existing_ledger(file) or nullcontext() as ledger, flow_admins(settings) as (source, target):
        known = None if ledger is None else ledger.cluster_pairs.find(ledger_name(settings.flow))
        with output.progress(f"Reading the cluster ids of {settings.flow}"):
            now = source.cluster_id(), target.cluster_id()
    then = (None, None) if known is None else (known.source_id, known.target_id)
    sides = ("source", "target")
    aliases = (settings.flow.source, settings.flow.target)
    output.table("clusters", _COLUMNS, list(zip(sides, aliases, now, then, strict=True)))
    if known is not None and then != now:
        output.note("The state of the flow belongs to other clusters; decide with `mirror clusters accept`.")
        output.exit_code = 3


@app.command()
@begin_with(flow_command)
def accept(
    command: FlowCommand,
    same: Annotated[
        bool,
        typer.Option(
            "--same",
            help="Continue: the cluster has the same records at the same offsets. One of --same and --new is needed.",
        ),
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="Archive earlier state: the next run is a first start.")] = False,
    yes: YesOption = False,
) -> None:
    """Accept that an alias of the flow points to another cluster than before."""
    if same == new:
        raise typer.BadParameter("one of them is required", param_hint="--same, --new")
    decision = ClusterDecision.SAME if same else ClusterDecision.NEW
    output = command.output
    file, settings = load_flow(command.config, command.flow)
    with locked_flow(file, settings) as (ledger, lease, clusters, _):
        with output.progress(f"Reading both clusters of {settings.flow}"):
            change = plan_cluster_change(settings, clusters, ledger, decision)
        output.document({"change": change.to_dict(), "done": False})
        output.note(str(change))
        if is_confirmed(output, "Apply this?", yes=yes):
            lease.check()
            apply_cluster_change(change, clusters, ledger, by=person())
            output.document({"done": True})
            output.note("Done; the decision is in the ledger's audit log.")
