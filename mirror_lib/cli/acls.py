"""`mirror acls`: what the source's ACLs mean on the target, and the grants to write that wait for the cutover."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from mirror_lib.cli.flow_options import ConfigOption, FlowOption, NowOption, TopicsOption, capped_errors, capped_table
from mirror_lib.cli.output import JsonOption, Output, reporting
from mirror_lib.topology.acls import AclBinding

if TYPE_CHECKING:
    from mirror_lib.sync.flow_acls import AclSync
    from mirror_lib.sync.staged_acls import StagedAclChange

_app = typer.Typer(name="acls", help="Carry topic ACLs to the target.", no_args_is_help=True)

_COLUMNS = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
_TargetTopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topics", help="Only grants on target topics that match this Java regex; may be given several times."
    ),
]
WithdrawnOption = Annotated[
    bool, typer.Option("--withdrawn", help="Also grants that the source had once and has no more.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.command()
def plan(config: ConfigOption, flow: FlowOption, topics: TopicsOption = None, as_json: JsonOption = False) -> None:
    """Show what would be created, and where source and target differ and who wins; changes nothing."""
    from mirror_lib.config.flow_topology import flow_topology
    from mirror_lib.ledger.handovers import load_flow_as_it_runs
    from mirror_lib.ledger.location import open_ledger
    from mirror_lib.sync.flow_acls import plan_flow_acls

    with reporting(as_json) as output:
        whole, settings = load_flow_as_it_runs(config, flow)
        topology = flow_topology(settings, topics or ())
        with open_ledger(whole) as ledger, output.progress(f"Reading both clusters of {settings.flow}"):
            done = plan_flow_acls(settings, topology, ledger)
        _show(output, done)


@_app.command()
def apply(
    config: ConfigOption,
    flow: FlowOption,
    topics: TopicsOption = None,
    now: NowOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create what the target lacks, and keep grants to write for the cutover where the flow says so."""
    from mirror_lib.config.flow_topology import flow_topology
    from mirror_lib.ledger.handovers import load_flow_as_it_runs
    from mirror_lib.ledger.location import open_ledger
    from mirror_lib.sync.flow_acls import apply_flow_acls

    del now
    with reporting(as_json) as output:
        whole, settings = load_flow_as_it_runs(config, flow)
        topology = flow_topology(settings, topics or ())
        with open_ledger(whole) as ledger, output.progress(f"Carrying ACLs of {settings.flow}"):
            done = apply_flow_acls(settings, topology, ledger, by=_person())
        _show(output, done)


@_app.command()
def release(
    config: ConfigOption,
    flow: FlowOption,
    topics: _TargetTopicsOption = None,
    withdrawn: WithdrawnOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put the grants to write that wait in the ledger on the target: part of a cutover. Needs no source."""
    from mirror_lib.ledger.handovers import load_flow_as_it_runs
    from mirror_lib.ledger.location import open_ledger
    from mirror_lib.sync.staged_acls import release_acls

    with reporting(as_json) as output:
        whole, settings = load_flow_as_it_runs(config, flow)
        with open_ledger(whole) as ledger, output.progress(f"Releasing grants to write of {settings.flow}"):
            done = release_acls(settings, ledger, by=_person(), with_withdrawn=withdrawn, topics=topics or ())
        _show_change(output, done, "released")


@_app.command()
def revoke(
    config: ConfigOption, flow: FlowOption, topics: _TargetTopicsOption = None, as_json: JsonOption = False
) -> None:
    """Take the released grants to write from the target again; they wait for the next release. Needs no source."""
    from mirror_lib.ledger.handovers import load_flow_as_it_runs
    from mirror_lib.ledger.location import open_ledger
    from mirror_lib.sync.staged_acls import revoke_acls

    with reporting(as_json) as output:
        whole, settings = load_flow_as_it_runs(config, flow)
        with open_ledger(whole) as ledger, output.progress(f"Revoking grants to write of {settings.flow}"):
            done = revoke_acls(settings, ledger, by=_person(), topics=topics or ())
        _show_change(output, done, "revoked")


def _show(output: Output, done: AclSync) -> None:
    output.exit_code = done.exit_code
    made = done.plan
    if made.notice is not None:
        output.note(made.notice)
    else:
        _table(output, "create", made.create)
        _table(output, "delete", made.delete)
        _table(output, "waiting", made.waiting)
        drift = [(*_cells(row.acl), row.difference.value, row.winner.value) for row in made.drift]
        capped_table(output, "drift", (*_COLUMNS, "difference", "wins"), drift)
        output.note(f"{made.unchanged} ACLs are as they should be")
    if made.waiting or made.released:
        waiting, released = len(made.waiting), len(made.released)
        output.note(f"{waiting} grants to write wait for `mirror acls release`, {released} are released")
    output.document(done.to_dict())
    capped_errors(output, [error for _, error in done.failed])


def _show_change(output: Output, done: StagedAclChange, verb: str) -> None:
    output.exit_code = done.exit_code
    _table(output, "changed", done.changed)
    output.note(done.notice or f"{len(done.changed)} grants to write were {verb}")
    for acls, sentence in (
        (done.present, "were on the target already and not put there by this program"),
        (done.withdrawn, "were withdrawn at the source and not released; --withdrawn releases them too"),
        (done.denied, "have no effect, because a DENY on the target forbids the same"),
    ):
        if acls:
            output.note(f"{len(acls)} grants {sentence}, such as: {acls[0]}")
    output.document(done.to_dict())
    capped_errors(output, [error for _, error in done.failed])


def _table(output: Output, name: str, acls: tuple[AclBinding, ...]) -> None:
    capped_table(output, name, _COLUMNS, [_cells(acl) for acl in acls])


def _cells(acl: AclBinding) -> tuple[str, ...]:
    return (
        acl.resource.value,
        acl.name,
        acl.pattern.value,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission.value,
    )


def _person() -> str:
    """Who is at the keyboard, as far as the system knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
