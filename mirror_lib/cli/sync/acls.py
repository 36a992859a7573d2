"""`mirror acls`: the source's ACLs on the target."""

from __future__ import annotations

from mirror_lib.cli.acl_rows import ACL_COLUMNS, acl_cells, acl_table, system_user
from mirror_lib.cli.commands import command_group
from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import TopicsOption, capped_errors, capped_table
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output
from mirror_lib.sync.acls.flow import AclSync, apply_flow_acls, plan_flow_acls

app = command_group("acls")


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
        done = apply_flow_acls(command.settings, topology, ledger, by=system_user())
    _show(command.output, done)


def _show(output: Output, done: AclSync) -> None:
    output.exit_code = done.exit_code
    made = done.plan
    if made.notice is not None:
        output.note(made.notice)
    else:
        acl_table(output, "create", made.create)
        acl_table(output, "delete", made.delete)
        acl_table(output, "waiting", made.waiting)
        drift = [(*acl_cells(row.acl), row.difference.value, row.winner.value) for row in made.drift]
        capped_table(output, "drift", (*ACL_COLUMNS, "difference", "wins"), drift)
        output.note(f"{made.unchanged} ACLs unchanged")
        acl_table(output, "skipped_denials", made.skipped_denials)
        if done.denials_text is not None:
            output.note(done.denials_text)
    if made.waiting or made.released:
        waiting, released = len(made.waiting), len(made.released)
        output.note(f"{waiting} WRITE grants staged (`mirror acls release`), {released} released")
    output.document(done.to_dict())
    capped_errors(output, [error for _, error in done.failed])
