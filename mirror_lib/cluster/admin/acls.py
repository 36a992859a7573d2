"""Reading, creating and deleting ACLs (KIP-140)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AclBinding as NativeBinding,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from mirror_lib.cluster.admin.requests import AdminCalls, raise_if_unreachable
from mirror_lib.cluster.admin.results import batches
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.kafka_errors import SecurityDisabledError, UnsupportedRequestError
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.errors import MirrorError, Where
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.acls import AclBinding, AclPattern, AclPermission, AclResource

#: A KRaft controller writes one metadata record per ACL, and rejects requests that need more than 10,000.
_ACLS_AT_ONCE = 2_000
_Native = TypeVar("_Native")

_RESOURCES = {
    AclResource.TOPIC: ResourceType.TOPIC,
    AclResource.GROUP: ResourceType.GROUP,
    AclResource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}
_PATTERNS = {AclPattern.LITERAL: ResourcePatternType.LITERAL, AclPattern.PREFIXED: ResourcePatternType.PREFIXED}
_PERMISSIONS = {AclPermission.ALLOW: AclPermissionType.ALLOW, AclPermission.DENY: AclPermissionType.DENY}


def list_acls(connection: Connection, resources: Iterable[AclResource]) -> frozenset[AclBinding]:
    """See `ClusterAdmin.acls`. Not through librdkafka, which returns an empty list for a rejected request."""

    async def ask() -> frozenset[AclBinding]:
        async with open_clients(connection) as (client,):
            return frozenset().union(*[await client.acls(resource) for resource in sorted(set(resources))])

    return asyncio.run(ask())


def create_acls(calls: AdminCalls, cluster: str, acls: Iterable[AclBinding]) -> dict[AclBinding, MirrorError | None]:
    """See `ClusterAdmin.create_acls`."""

    def ask(part: Sequence[NativeBinding], seconds: float) -> Mapping[NativeBinding, Future[Any]]:
        futures: Mapping[NativeBinding, Future[Any]] = calls.client.create_acls(list(part), request_timeout=seconds)
        return futures

    every = sorted(set(acls))
    refused = {acl: _unwritable(cluster, acl) for acl in every if acl.operation not in AclOperation.__members__}
    wanted = {_to_native(acl): acl for acl in every if acl not in refused}
    return _change(calls, cluster, wanted, ask, "create an ACL") | refused


def delete_acls(calls: AdminCalls, cluster: str, acls: Iterable[AclBinding]) -> dict[AclBinding, MirrorError | None]:
    """See `ClusterAdmin.delete_acls`."""

    def ask(part: Sequence[AclBindingFilter], seconds: float) -> Mapping[AclBindingFilter, Future[Any]]:
        futures: Mapping[AclBindingFilter, Future[Any]] = calls.client.delete_acls(list(part), request_timeout=seconds)
        return futures

    wanted = {_exactly(acl): acl for acl in sorted(set(acls))}
    return _change(calls, cluster, wanted, ask, "delete an ACL")


def _change(
    calls: AdminCalls,
    cluster: str,
    wanted: Mapping[_Native, AclBinding],
    ask: Callable[[Sequence[_Native], float], Mapping[_Native, Future[Any]]],
    doing: str,
) -> dict[AclBinding, MirrorError | None]:
    deadline = calls.begin()
    outcome: dict[AclBinding, MirrorError | None] = {}
    for part in batches(list(wanted), _ACLS_AT_ONCE):
        seconds = max(deadline - time.monotonic(), 0.1)
        for native, future in ask(part, seconds).items():
            acl = wanted[native]
            topic = acl.name if acl.resource is AclResource.TOPIC else None
            where, needs = Where(cluster=cluster, topic=topic), Grant.on_cluster(Operation.ALTER)
            response = calls.wait(future, seconds, doing, where, needs)
            outcome[acl] = response if isinstance(response, MirrorError) else None
    raise_if_unreachable(outcome.values())
    for error in outcome.values():
        if isinstance(error, SecurityDisabledError):
            raise error
    return outcome


def _unwritable(cluster: str, acl: AclBinding) -> MirrorError:
    return UnsupportedRequestError(
        f"could not create an ACL: the client library does not support the operation {acl.operation}.",
        where=Where(cluster=cluster),
        action="Create it with kafka-acls.",
    )


def _exactly(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(*_arguments(acl))


def _to_native(acl: AclBinding) -> NativeBinding:
    return NativeBinding(*_arguments(acl))


def _arguments(acl: AclBinding) -> tuple[Any, ...]:
    return (
        _RESOURCES[acl.resource],
        acl.name,
        _PATTERNS[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        _PERMISSIONS[acl.permission],
    )
