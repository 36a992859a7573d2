"""`mirror acls`: the source's ACLs on the target, staged write grants for the cutover, and the permissions that the
flow's own user needs.
"""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from mirror_lib.access import AccessTask, RequiredAccess, acl_commands, required_access, scheduled_access
from mirror_lib.cli.commands import command_group
from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import ConfigOption, FlowOption, TopicsOption, capped_errors, capped_table
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import JsonOption, JsonOutput, Output, report_errors
from mirror_lib.cluster.auth import parse_jaas
from mirror_lib.config import ClientSettings, load_flow
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


class AclFormat(StrEnum):
    """Output formats of permissions."""

    TABLE = "table"
    KAFKA_ACLS = "kafka-acls"
    JSON = "json"


@app.command()
def required(
    config: ConfigOption,
    flow: FlowOption,
    principal: Annotated[
        str | None,
        typer.Option("--principal", help="Principal to grant to; default: the user in the file's sasl.jaas.config."),
    ] = None,
    task: Annotated[list[AccessTask] | None, typer.Option("--task", help="Only for this task; repeatable.")] = None,
    form: Annotated[
        AclFormat, typer.Option("--format", help="Output format: a table, commands of kafka-acls.sh, or JSON.")
    ] = (AclFormat.TABLE),
    command_config: Annotated[
        str | None,
        typer.Option("--command-config", help="For kafka-acls.sh: client properties of a user that may alter ACLs."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the minimum permissions of the flow's user on both clusters; connects to no cluster.

    The table contains all tasks. The commands contain the scheduled tasks; --task selects others, such as verify,
    backfill and cutover.
    """
    with report_errors(as_json or form is AclFormat.JSON) as output:
        whole, settings = load_flow(config, flow)
        needed = [each for each in required_access(whole, settings) if not task or each.task in task]
        clients = {client.cluster: client for client in (settings.clients.source_admin, settings.clients.target_admin)}
        principals = {cluster: principal or _user(client) for cluster, client in clients.items()}
        commands = acl_commands(
            needed if task else scheduled_access(settings, needed),
            principals=principals,
            bootstrap_servers={cluster: client.properties["bootstrap.servers"] for cluster, client in clients.items()},
            command_config=command_config,
        )
        output.document({"required": [each.to_dict() for each in needed], "principals": principals})
        output.document({"commands": [line for line in commands if line and not line.startswith("#")]})
        if form is AclFormat.KAFKA_ACLS:
            for line in commands:
                output.note(line)
            if not task:
                output.note("\n# For scheduled tasks only; add --task verify, backfill or cutover for these.")
        else:
            _required_tables(output, needed)


def _required_tables(output: Output, needed: Sequence[RequiredAccess]) -> None:
    if isinstance(output, JsonOutput):
        return
    for cluster, side in dict.fromkeys((each.cluster, each.side) for each in needed):
        rows = [
            (
                each.task.value,
                each.grant.operation.value,
                each.grant.place,
                each.why + (f" (before Kafka {each.before})" if each.before else ""),
                each.mirror_maker,
            )
            for each in needed
            if (each.cluster, each.side) == (cluster, side)
        ]
        output.table(f"cluster {cluster} ({side})", ("task", "operation", "on", "why", "MirrorMaker 2 too"), rows)
    output.note("READ, WRITE and ALTER include DESCRIBE; ALTER_CONFIGS includes DESCRIBE_CONFIGS.")


def _user(client: ClientSettings) -> str:
    """Return the principal that a client logs in as, if its properties show it."""
    try:
        name = parse_jaas(client.properties.get("sasl.jaas.config", "")).options.get("username")
    except ValueError:
        name = None
    return f"User:{name or 'mirror'}"


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
