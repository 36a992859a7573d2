"""`mirror acls release` and `revoke`: staged write grants for a cutover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from mirror_lib.cli import FlowCommand, Output, acl_table, begin_with, capped_errors, flow_command, system_user
from mirror_lib.features.cutover.staged_acls import StagedAclChange, release_acls, revoke_acls
from mirror_lib.topology.flow_topology import shown_choice

app = typer.Typer()

_TargetTopicsOption = Annotated[list[str] | None, typer.Option(help="Java regex of target topics; repeatable.")]


@app.command()
@begin_with(flow_command)
def release(
    command: FlowCommand,
    topics: _TargetTopicsOption = None,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Also grants that the source has withdrawn.")] = False,
) -> None:
    """Create the staged WRITE grants on the target: part of a cutover. Does not need the source."""
    with command.ledger("Releasing staged grants of") as ledger:
        done = release_acls(command.settings, ledger, by=system_user(), with_withdrawn=withdrawn, topics=topics or ())
    _show_change(command.output, done, "released", topics or (), "staged")


@app.command()
@begin_with(flow_command)
def revoke(command: FlowCommand, topics: _TargetTopicsOption = None) -> None:
    """Delete the released WRITE grants from the target; they are staged again. Does not need the source."""
    with command.ledger("Revoking released grants of") as ledger:
        done = revoke_acls(command.settings, ledger, by=system_user(), topics=topics or ())
    _show_change(command.output, done, "revoked", topics or (), "released")


def _show_change(output: Output, done: StagedAclChange, verb: str, topics: Sequence[str], state: str) -> None:
    output.exit_code = done.exit_code
    acl_table(output, "changed", done.changed)
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
