"""`mirror acls`: the source's ACLs on the target, and staged write grants for the cutover."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import Annotated

import typer

from mirror_lib.cli.commands import command_group
from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import TopicsOption, capped_errors, capped_table
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output
from mirror_lib.sync.acls import AclSync, StagedAclChange, apply_flow_acls, plan_flow_acls, release_acls, revoke_acls
from mirror_lib.topology import AclBinding, shown_choice

app = command_group("acls")

_COLUMNS = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
_TargetTopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topics", help="Java regex of target topics; repeatable."),
]


@app.command()
@begin_with(flow_command)
def plan(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Show the ACLs to create, and differences between source and target with the side that wins; changes nothing.

    Exit code 1 if DENY ACLs of the source are not synchronized.
    """
    topology = command.topology(topics)
    with command.ledger() as ledger:
        done = plan_flow_acls(command.settings, topology, ledger)
    _show(command.output, done)


@app.command()
@begin_with(flow_command)
def apply(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Create missing ACLs on the target, and stage WRITE grants for a cutover if the flow is configured to.

    Exit code 1 if DENY ACLs of the source are not synchronized.
    """
    topology = command.topology(topics)
    with command.ledger("Synchronizing ACLs of") as ledger:
        done = apply_flow_acls(command.settings, topology, ledger, by=_person())
    _show(command.output, done)


@app.command()
@begin_with(flow_command)
def release(
    command: FlowCommand,
    topics: _TargetTopicsOption = None,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Also grants that the source has withdrawn.")] = False,
) -> None:
    """Create the staged WRITE grants on the target: part of a cutover. Does not need the source."""
    with command.ledger("Releasing staged grants of") as ledger:
        done = release_acls(command.settings, ledger, by=_person(), with_withdrawn=withdrawn, topics=topics or ())
    _show_change(command.output, done, "released", topics or (), "staged")


@app.command()
@begin_with(flow_command)
def revoke(command: FlowCommand, topics: _TargetTopicsOption = None) -> None:
    """Delete the released WRITE grants from the target; they are staged again. Does not need the source."""
    with command.ledger("Revoking released grants of") as ledger:
        done = revoke_acls(command.settings, ledger, by=_person(), topics=topics or ())
    _show_change(command.output, done, "revoked", topics or (), "released")


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
        output.note(f"{made.unchanged} ACLs unchanged")
        _table(output, "skipped_denials", made.skipped_denials)
        if done.denials_text is not None:
            output.note(done.denials_text)
    if made.waiting or made.released:
        waiting, released = len(made.waiting), len(made.released)
        output.note(f"{waiting} WRITE grants staged (`mirror acls release`), {released} released")
    output.document(done.to_dict())
    capped_errors(output, [error for _, error in done.failed])


def _show_change(output: Output, done: StagedAclChange, verb: str, topics: Sequence[str], state: str) -> None:
    output.exit_code = done.exit_code
    _table(output, "changed", done.changed)
    none = ""
    if topics and not (done.changed or done.present or done.withdrawn or done.failed):
        # Perhaps a misspelt name, or the source's name in place of the target's; or the command is repeated.
        none = f": no grant on a target topic that matches {shown_choice(topics)} is {state}"
    output.note(done.notice or f"{len(done.changed)} WRITE grants {verb}{none}")
    for acls, sentence in (
        (done.present, "existed on the target already and were not created by this program"),
        (done.withdrawn, "were withdrawn on the source and not released; --withdrawn releases them too"),
        (done.denied, "have no effect, because an ACL on the target denies the same"),
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
    """Return the operator, as known to the system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
