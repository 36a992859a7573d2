"""ACLs as commands show them."""

from __future__ import annotations

import getpass
from collections.abc import Sequence

from mirror_lib.cli.flow_options import capped_table
from mirror_lib.cli.output import Output
from mirror_lib.topology.acls import AclBinding

ACL_COLUMNS = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def acl_table(output: Output, name: str, acls: Sequence[AclBinding]) -> None:
    """Show ACLs, one on each line."""
    capped_table(output, name, ACL_COLUMNS, [acl_cells(acl) for acl in acls])


def acl_cells(acl: AclBinding) -> tuple[str, ...]:
    """Return an ACL as cells of `ACL_COLUMNS`."""
    return (
        acl.resource.value,
        acl.name,
        acl.pattern.value,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission.value,
    )


def system_user() -> str:
    """Return the operator, as known to the system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
