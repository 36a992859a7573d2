"""`mirror clusters`: the clusters that a flow's state belongs to, and the decision when an alias names another one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from mirror_lib.cli.confirmation import YesOption, ask_confirmation, person
from mirror_lib.cli.flow_options import ConfigOption, FlowOption
from mirror_lib.cli.output import JsonOption, report_errors
from mirror_lib.cli.repair.locked_flow import locked_flow
from mirror_lib.config import load_flow
from mirror_lib.ledger import existing_ledger
from mirror_lib.relay.repair import ClusterDecision, apply_cluster_change, plan_cluster_change
from mirror_lib.sync import flow_admins, ledger_name

_app = typer.Typer(name="clusters", help="The cluster ids that the state of a flow belongs to.", no_args_is_help=True)

_COLUMNS = ("side", "alias", "cluster id", "in the ledger")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.command()
def show(config: ConfigOption, flow: FlowOption, as_json: JsonOption = False) -> None:
    """Show the cluster ids of a flow and those stored in the ledger. Exit code 3 if they differ."""

    with report_errors(as_json) as output:
        file, settings = load_flow(config, flow)
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


@_app.command()
def accept(
    config: ConfigOption,
    flow: FlowOption,
    same: Annotated[
        bool,
        typer.Option(
            "--same",
            help="Continue: the cluster has the same records at the same offsets. One of --same and --new is needed.",
        ),
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="Archive earlier state: the next run is a first start.")] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Accept that an alias of the flow points to another cluster than before."""

    if same == new:
        raise typer.BadParameter("one of them is required", param_hint="--same, --new")
    decision = ClusterDecision.SAME if same else ClusterDecision.NEW
    with report_errors(as_json) as output:
        file, settings = load_flow(config, flow)
        with locked_flow(file, settings) as (ledger, lease, clusters, _):
            with output.progress(f"Reading both clusters of {settings.flow}"):
                change = plan_cluster_change(settings, clusters, ledger, decision)
            output.document({"change": change.to_dict()})
            output.note(str(change))
            if yes or ask_confirmation("Apply this?"):
                lease.check()
                apply_cluster_change(change, clusters, ledger, by=person())
                output.document({"done": True})
                output.note("Done; the decision is in the ledger's audit log.")
            else:
                output.document({"done": False})
                output.note("Nothing was changed.")
                output.exit_code = 1
