"""ACLs by another client than the product's, and a cluster on which one user has nothing but what ACLs grant."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.broker_config import WITH_ACLS
from tests.support.kafka import admin

ALICE = "User:alice"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def acl(
    name: str,
    operation: str,
    *,
    principal: str = ALICE,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    resource: ResourceType = ResourceType.TOPIC,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    """One ACL for every host."""
    return AclBinding(resource, name, pattern, principal, "*", AclOperation[operation], permission)


def add_acls(cluster: KafkaCluster, *acls: AclBinding) -> None:
    """Create ACLs."""
    client = admin(cluster)
    for future in client.create_acls(list(acls)).values():
        future.result(30)


def guarded_cluster(name: str, folder: Path, jars: Path) -> KafkaCluster:
    """A cluster at whose second listener alice logs in, who is allowed nothing by itself."""
    overrides = {
        **WITH_ACLS,
        "listener.name.password.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.password.plain.sasl.jaas.config": f'{_PLAIN} user_alice="wonderland";',
    }
    listeners = {"PLAINTEXT": "PLAINTEXT", "PASSWORD": "SASL_PLAINTEXT"}
    return KafkaCluster(name, directory=folder / name, jars=jars, overrides=overrides, listeners=listeners)


def login_of_alice(cluster: KafkaCluster) -> dict[str, str]:
    """The settings of a client of alice."""
    return {
        "bootstrap.servers": cluster.bootstrap_servers_of("PASSWORD"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_PLAIN} username="alice" password="wonderland";',
    }
