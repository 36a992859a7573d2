"""`mirror acls required`: the permissions that the flow's own user needs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from mirror_lib.cli import ConfigOption, FlowOption, JsonOption, JsonOutput, Output, report_errors
from mirror_lib.cluster.auth.jaas import parse_jaas
from mirror_lib.config.loader import load_flow
from mirror_lib.config.model import ClientSettings
from mirror_lib.features.access.commands import acl_commands
from mirror_lib.features.access.model import AccessTask, RequiredAccess
from mirror_lib.features.access.required import required_access, scheduled_access

app = typer.Typer()


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
        str | None, typer.Option(help="Principal to grant to; default: the user in the file's sasl.jaas.config.")
    ] = None,
    task: Annotated[list[AccessTask] | None, typer.Option(help="Only for this task; repeatable.")] = None,
    form: Annotated[
        AclFormat, typer.Option("--format", help="Output format: a table, commands of kafka-acls.sh, or JSON.")
    ] = (AclFormat.TABLE),
    command_config: Annotated[
        str | None, typer.Option(help="For kafka-acls.sh: client properties of a user that may alter ACLs.")
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
