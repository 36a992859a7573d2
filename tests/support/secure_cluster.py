"""A broker that wants TLS and passwords, or TLS client certificates; both Java's own stores and users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import ClientSettings
from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.dev.broker_config import WITH_ACLS
from tests.support.pki import PASSWORD, Certified

ADMIN, ADMIN_PASSWORD = "admin", 'adm"in\\1'
#: May log in, and is allowed nothing.
ALICE, ALICE_PASSWORD = "alice", "wonderland"
_MODULE = "org.apache.kafka.common.security."


@dataclass(frozen=True, slots=True)
class SecureCluster:
    """A running broker and what its clients need."""

    cluster: KafkaCluster
    root: Certified
    client: Certified

    def connection(self, listener: str, **properties: str) -> Connection:
        """A connection that trusts the broker's authority; keyword properties have `_` for `.`."""
        return Connection.from_settings(
            ClientSettings(
                cluster="secure",
                role="test",
                properties={
                    "bootstrap.servers": self.cluster.bootstrap_servers_of(listener),
                    "ssl.truststore.type": "PEM",
                    "ssl.truststore.certificates": self.root.pem,
                    **{name.replace("_", "."): value for name, value in properties.items()},
                },
            )
        )

    def with_password(
        self, mechanism: str = "PLAIN", user: str = ADMIN, password: str = ADMIN_PASSWORD, **properties: str
    ) -> Connection:
        """On the listener that wants a password."""
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        return self.connection(
            "PASSWORD",
            security_protocol="SASL_SSL",
            sasl_mechanism=mechanism,
            sasl_jaas_config=f'{_MODULE}{module} required username="{user}" password="{quoted}";',
            **properties,
        )

    def with_certificate(self, holder: Certified, **properties: str) -> Connection:
        """On the listener that wants a client certificate."""
        return self.connection(
            "MUTUAL",
            security_protocol="SSL",
            ssl_keystore_type="PEM",
            ssl_keystore_key=holder.key_pem(),
            ssl_keystore_certificate_chain=holder.chain_pem,
            **properties,
        )


@contextmanager
def secure_cluster(folder: Path, jars: Path) -> Iterator[SecureCluster]:
    """Start the broker with a fresh authority, and stop it."""
    root = Certified.root("Root")
    middle = root.issue("Middle", authority=True)
    stores = folder / "stores"
    stores.mkdir(parents=True)
    (stores / "broker.p12").write_bytes(middle.issue("broker", addresses=("127.0.0.1",)).keystore())
    (stores / "trust.p12").write_bytes(root.truststore())
    users = "".join(
        f' user_{user}="{password}"'
        for user, password in (
            (ADMIN, ADMIN_PASSWORD.replace("\\", "\\\\").replace('"', '\\"')),
            (ALICE, ALICE_PASSWORD),
        )
    )
    overrides = {
        **WITH_ACLS,
        "super.users": f"User:ANONYMOUS;User:{ADMIN};User:CN=client",
        "ssl.keystore.location": str(stores / "broker.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(stores / "trust.p12"),
        "ssl.truststore.password": PASSWORD,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.password.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.password.plain.sasl.jaas.config": f"{_MODULE}plain.PlainLoginModule required{users};",
        "listener.name.password.scram-sha-256.sasl.jaas.config": f"{_MODULE}scram.ScramLoginModule required;",
        "listener.name.password.scram-sha-512.sasl.jaas.config": f"{_MODULE}scram.ScramLoginModule required;",
    }
    cluster = KafkaCluster(
        "secure",
        directory=folder / "secure",
        jars=jars,
        overrides=overrides,
        listeners={"PLAINTEXT": "PLAINTEXT", "PASSWORD": "SASL_SSL", "MUTUAL": "SSL"},
    )
    with cluster:
        _add_scram_users(cluster)
        yield SecureCluster(cluster, root, middle.issue("client"))


def _add_scram_users(cluster: KafkaCluster) -> None:
    wanted = [
        UserScramCredentialUpsertion(ADMIN, ScramCredentialInfo(mechanism, 4096), ADMIN_PASSWORD.encode())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 3})
    for change in wanted:
        client.alter_user_scram_credentials([change])[ADMIN].result(timeout=30)
