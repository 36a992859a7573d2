"""ACLs as plain values, in the words of Kafka's `AclBinding`, `ResourcePattern` and `AccessControlEntry`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from mirror_lib.printable import printable

#: As a literal resource name: every resource of the type (`ResourcePattern.WILDCARD_RESOURCE`).
WILDCARD = "*"
#: Operations are texts with Kafka's names, so that those of later versions are preserved.
ALL, READ, WRITE = "ALL", "READ", "WRITE"


class AclResource(StrEnum):
    """The types of resources whose ACLs can be copied (Java `ResourceType`)."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"


class AclPattern(StrEnum):
    """How a resource name is matched (Java `PatternType`, KIP-290)."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class AclPermission(StrEnum):
    """The effect of an ACL (Java `AclPermissionType`)."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """One ACL of a cluster."""

    resource: AclResource
    name: str
    pattern: AclPattern
    #: `User:alice`, or another type and name.
    principal: str
    #: An address, or `*` for all.
    host: str
    #: Java's name of the operation: `READ`, `DESCRIBE_CONFIGS`, ...
    operation: str
    permission: AclPermission

    @property
    def grants_writes(self) -> bool:
        """True if it allows writing to topics."""
        allows = self.permission is AclPermission.ALLOW
        return self.resource is AclResource.TOPIC and allows and self.operation in (WRITE, ALL)

    def matches(self, name: str) -> bool:
        """True if the pattern covers a resource with this name."""
        if self.pattern is AclPattern.PREFIXED:
            return name.startswith(self.name)
        return self.name in (WILDCARD, name)

    @classmethod
    def from_dict(cls, data: Mapping[str, str]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        return cls(
            AclResource(data["resource"]),
            data["name"],
            AclPattern(data["pattern"]),
            data["principal"],
            data["host"],
            data["operation"],
            AclPermission(data["permission"]),
        )

    def __str__(self) -> str:
        pattern = " prefixed" if self.pattern is AclPattern.PREFIXED else ""
        host = "" if self.host == WILDCARD else f" from {self.host}"
        place = f"{pattern} {self.resource.value} {self.name}"
        return printable(f"{self.permission.value} {self.principal}{host} {self.operation} on{place}")
