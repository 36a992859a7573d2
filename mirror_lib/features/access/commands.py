"""The rights of a flow as commands of Kafka's `kafka-acls.sh`. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from mirror_lib.features.access.model import RequiredAccess, grants_by_cluster
from mirror_lib.topology.access import Grant, acls_operation, resource_arguments


def acl_commands(
    required: Sequence[RequiredAccess],
    *,
    principals: Mapping[str, str],
    bootstrap_servers: Mapping[str, str],
    command_config: str | None = None,
) -> tuple[str, ...]:
    """Shell lines, one command for each resource of each cluster, with a comment for each cluster.

    Rights that only old brokers need come last, commented out.

    Args:
        principals: who gets the rights, by cluster.
        bootstrap_servers: by cluster.
        command_config: a file with the client properties of a user who may alter ACLs.
    """
    always = grants_by_cluster(each for each in required if each.before is None)
    lines: list[str] = []
    for cluster, grants in always.items():
        begin = ["kafka-acls.sh", "--bootstrap-server", bootstrap_servers[cluster]]
        begin += ["--command-config", command_config] if command_config else []
        begin += ["--add", "--allow-principal", principals[cluster]]
        sides = sorted({each.side.value for each in required if each.cluster == cluster})
        lines += ["", f"# cluster {cluster} ({' and '.join(sides)})"]
        lines += (shlex.join([*begin, *arguments]) for arguments in _by_resource(grants))
        old = {each.grant: each.before for each in required if each.cluster == cluster and each.before is not None}
        lines += (
            f"# before Kafka {before}: {shlex.join([*begin, *grant.arguments])}"
            for grant, before in sorted(old.items())
        )
    return tuple(lines[1:])


def _by_resource(grants: Iterable[Grant]) -> list[tuple[str, ...]]:
    """The arguments of one command for each resource, with all its operations."""
    found: dict[tuple[str, ...], list[str]] = {}
    for grant in grants:
        found.setdefault(resource_arguments(grant), []).append(acls_operation(grant.operation))
    return [
        (*(argument for operation in operations for argument in ("--operation", operation)), *resource)
        for resource, operations in found.items()
    ]
