"""Rights of a cluster's users as plain values in Kafka's terms: operations on resources.

Kafka's authorizers (`StandardAuthorizerData`, `AclAuthorizer`) define which operation implies which other: read, write,
alter and delete imply describe, and alter configs implies describe configs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from mirror_lib.topology.acls import WILDCARD, AclPattern


class Operation(StrEnum):
    """An operation (Java `AclOperation`)."""

    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"


class Resource(StrEnum):
    """A type of resource (Java `ResourceType`), with the name of its option in `kafka-acls.sh`."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


#: The one name of the resource type `cluster` (Java `Resource.CLUSTER_NAME`).
CLUSTER_NAME = "kafka-cluster"

_ALLOWED_BY = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One operation that is allowed on the resources of a pattern."""

    resource: Resource
    #: `*` with a literal pattern: all resources of the type.
    name: str
    pattern: AclPattern
    operation: Operation

    @classmethod
    def on_topic(cls, operation: Operation, topic: str) -> Self:
        """On one topic."""
        return cls(Resource.TOPIC, topic, AclPattern.LITERAL, operation)

    @classmethod
    def on_group(cls, operation: Operation, group: str) -> Self:
        """On one consumer group."""
        return cls(Resource.GROUP, group, AclPattern.LITERAL, operation)

    @classmethod
    def on_transactional_id(cls, operation: Operation, transactional_id: str) -> Self:
        """On one transactional id."""
        return cls(Resource.TRANSACTIONAL_ID, transactional_id, AclPattern.LITERAL, operation)

    @classmethod
    def on_cluster(cls, operation: Operation) -> Self:
        """On the cluster as a whole."""
        return cls(Resource.CLUSTER, CLUSTER_NAME, AclPattern.LITERAL, operation)

    def covers(self, other: Grant) -> bool:
        """Return true if this grant implies the other."""
        return self.resource is other.resource and self._allows(other.operation) and self._holds(other)

    def _allows(self, operation: Operation) -> bool:
        return self.operation is operation or self.operation in _ALLOWED_BY.get(operation, ())

    def _holds(self, other: Grant) -> bool:
        if self.pattern is AclPattern.PREFIXED:
            return other.name.startswith(self.name) and not other.is_any
        return self.is_any or (other.pattern is AclPattern.LITERAL and self.name == other.name)

    @property
    def is_any(self) -> bool:
        """True if it applies to all resources of the type."""
        return self.pattern is AclPattern.LITERAL and self.name == WILDCARD

    def __str__(self) -> str:
        return f"{self.operation} on {self.place}"

    @property
    def place(self) -> str:
        """The resources as text."""
        if self.resource is Resource.CLUSTER:
            return "the cluster"
        kind = self.resource.value.replace("-", " ")
        if self.is_any:
            return f"all {kind}s"
        return f"{kind}s that begin with {self.name}" if self.pattern is AclPattern.PREFIXED else f"{kind} {self.name}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `kafka-acls.sh` that name operation and resource, not quoted for a shell."""
        return ("--operation", acls_operation(self.operation), *resource_arguments(self))


def resource_arguments(grant: Grant) -> tuple[str, ...]:
    """The arguments of `kafka-acls.sh` that name a grant's resource, not quoted for a shell."""
    if grant.resource is Resource.CLUSTER:
        return ("--cluster",)
    named = (f"--{grant.resource.value}", grant.name)
    return (*named, "--resource-pattern-type", "prefixed") if grant.pattern is AclPattern.PREFIXED else named


def acls_operation(operation: Operation) -> str:
    """An operation as `kafka-acls.sh` writes it, such as `DescribeConfigs`."""
    return "".join(word.capitalize() for word in operation.value.split("_"))


def without_covered(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """The grants in order, without those that other ones imply."""
    every = sorted(set(grants))
    return tuple(grant for grant in every if not any(other != grant and other.covers(grant) for other in every))
