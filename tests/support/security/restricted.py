"""Clusters with an authorizer, and flows between them that run as a user who may do only what he was granted."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from mirror_lib.config.loader import load
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.features.access.model import RequiredAccess
from mirror_lib.features.access.required import required_access
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.access import Grant, Resource
from mirror_lib.topology.acls import AclPattern
from tests.support.clusters import FAST_HOUSEKEEPING
from tests.support.ledger.ledgers import ready_ledger

USER = "mirror"
#: Where users without a name may do everything, and where `USER` logs in.
_OPEN, _NAMED = "PLAINTEXT", "NAMED"
_PASSWORD = "glass"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_TYPES = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    Resource.CLUSTER: ResourceType.BROKER,
}
_PATTERNS = {AclPattern.LITERAL: ResourcePatternType.LITERAL, AclPattern.PREFIXED: ResourcePatternType.PREFIXED}
_NUMBERS = itertools.count(1)


def restricted_cluster(name: str, folder: Path, jars: Path) -> KafkaCluster:
    """A cluster, not started, on which `USER` may do nothing yet."""
    overrides = {
        # With the cleaner's usual pause of 15 seconds, lost deletions take most of a minute.
        **FAST_HOUSEKEEPING,
        "listener.name.named.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.named.plain.sasl.jaas.config": f'{_MODULE} user_{USER}="{_PASSWORD}";',
    }
    listeners = {_OPEN: "PLAINTEXT", _NAMED: "SASL_PLAINTEXT"}
    return KafkaCluster(name, directory=folder / name, jars=jars, overrides=overrides, listeners=listeners)


@dataclass(frozen=True, slots=True)
class Granter:
    """Gives `USER` exactly some rights on one cluster."""

    cluster: KafkaCluster
    client: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "client", AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers}))

    def set(self, grants: Iterable[Grant]) -> None:
        """Take all away that the user was granted, and grant this."""
        wanted = {binding(grant) for grant in grants}
        present = set(self._present())
        _wait(self.client.delete_acls([_exactly(each) for each in present - wanted]) if present - wanted else {})
        _wait(self.client.create_acls(sorted(wanted - present, key=str)) if wanted - present else {})
        deadline = time.monotonic() + 20
        while set(self._present()) != wanted:
            assert time.monotonic() < deadline, "the ACLs did not arrive"
            time.sleep(0.02)

    def _present(self) -> Iterator[AclBinding]:
        every = AclBindingFilter(
            ResourceType.ANY,
            None,  # type: ignore[arg-type]  # means any
            ResourcePatternType.ANY,
            f"User:{USER}",
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        yield from self.client.describe_acls(every).result(timeout=20)


def _wait(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(timeout=20)


def binding(grant: Grant, user: str = USER) -> AclBinding:
    """The ACL that gives a user a right."""
    return AclBinding(
        _TYPES[grant.resource],
        grant.name,
        _PATTERNS[grant.pattern],
        f"User:{user}",
        "*",
        AclOperation[grant.operation.value],
        AclPermissionType.ALLOW,
    )


def _exactly(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


@dataclass(frozen=True, slots=True)
class RestrictedPair:
    """The two clusters of flows."""

    source: Granter
    target: Granter

    @contextmanager
    def granting(self, flow: FlowConfig, grants: Mapping[str, Iterable[Grant]]) -> Iterator[None]:
        """`USER` may do this, by cluster, and nothing else."""
        self.source.set(grants.get(flow.flow.source, ()))
        self.target.set(grants.get(flow.flow.target, ()))
        yield


@dataclass(frozen=True, slots=True)
class World:
    """A flow with names of its own, as everybody's and as `USER`'s: no other flow has its internal topics."""

    number: int
    pair: RestrictedPair
    ledger: Ledger
    #: As whoever may do everything.
    open: MirrorConfig
    #: As the user.
    named: MirrorConfig

    @property
    def source_alias(self) -> str:
        return f"A{self.number}"

    @property
    def target_alias(self) -> str:
        return f"B{self.number}"

    @property
    def name(self) -> str:
        return f"{self.source_alias}->{self.target_alias}"

    @property
    def orders(self) -> str:
        """The topic that the flow copies."""
        return f"orders-{self.number}"

    @property
    def group(self) -> str:
        return f"billing-{self.number}"

    @property
    def flow(self) -> FlowConfig:
        """As the user."""
        return self.named.flow(self.name)

    @property
    def open_flow(self) -> FlowConfig:
        return self.open.flow(self.name)

    @property
    def required(self) -> tuple[RequiredAccess, ...]:
        """Without what only old brokers ask for."""
        return tuple(each for each in required_access(self.named, self.flow) if each.before is None)


def new_world(pair: RestrictedPair, folder: Path, settings: Mapping[str, str] | None = None) -> World:
    """A flow between the clusters under aliases that no other has; in settings, NUMBER stands for its number."""
    number = next(_NUMBERS)
    ledger = ready_ledger(f"sqlite:///{folder}/ledger-{number}.sqlite3")

    def written(name: str, listener: str, more: Mapping[str, str]) -> MirrorConfig:
        servers = [cluster.bootstrap_servers_of(listener) for cluster in (pair.source.cluster, pair.target.cluster)]
        own = {key: value.replace("NUMBER", str(number)) for key, value in (settings or {}).items()}
        lines = {**_lines(number, *servers), **more, **own}
        return _loaded(folder / f"{name}-{number}.properties", lines)

    as_user = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_MODULE} username="{USER}" password="{_PASSWORD}";',
    }
    return World(number, pair, ledger, written("open", _OPEN, {}), written("named", _NAMED, as_user))


def example_rights(settings: Mapping[str, str]) -> tuple[RequiredAccess, ...]:
    """What flows of these tests need, in the order of `World.required`, known without clusters."""
    with TemporaryDirectory() as folder:
        lines = {**_lines(0, "a:9092", "b:9092"), **settings}
        config = _loaded(Path(folder) / "mirror.properties", lines)
    return tuple(each for each in required_access(config, config.flow("A0->B0")) if each.before is None)


def _loaded(path: Path, lines: Mapping[str, str]) -> MirrorConfig:
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
    return load(path)


def _lines(number: int, source_servers: str, target_servers: str) -> dict[str, str]:
    source, target = f"A{number}", f"B{number}"
    return {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": source_servers,
        f"{target}.bootstrap.servers": target_servers,
        f"{source}->{target}.enabled": "true",
        "topics": f"orders-{number}",
        "groups": f"billing-{number}",
        "heartbeats.replication.enabled": "false",
        "sync.group.offsets.enabled": "true",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        f"{target}.offset.storage.replication.factor": "1",
        f"{target}.offset.storage.partitions": "1",
        "mirror.retry.max.seconds": "3",
        "mirror.run.lease.seconds": "3",
        "admin.timeout.ms": "10000",
        "mirror.acls.stage.writes.enabled": "true",
    }
