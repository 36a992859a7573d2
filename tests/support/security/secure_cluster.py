"""A broker that wants to know who its clients are: a listener for each way of Kafka to prove it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from mirror_lib.features.demo.broker import FAST_START_JVM, KafkaCluster
from mirror_lib.features.demo.broker_config import WITH_ACLS
from mirror_lib.features.demo.ports import LOOPBACK
from tests.support.connections import connection_of
from tests.support.security.kdc import Realm
from tests.support.security.pki import PASSWORD, Certified
from tests.support.security.token_endpoint import AUDIENCE, ISSUER, TokenEndpoint

#: With all characters that a connection string of Azure Event Hubs may have, and those that JAAS quotes.
ADMIN, ADMIN_PASSWORD = "admin", 'adm"in\\1;sb://ns=s3cret+/a#b!%25='
#: The user of tokens, and of tickets.
SERVICE, SERVICE_SECRET = "mirror", "t0ken-secret"
#: The first part of the broker's principal.
KERBEROS_SERVICE = "kafka"
LISTENERS: Mapping[str, str] = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "OPEN": "SASL_PLAINTEXT",
    "PASSWORD": "SASL_SSL",
}
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


@dataclass(frozen=True, slots=True)
class SecureCluster:
    """A running broker and what its clients need."""

    cluster: KafkaCluster
    root: Certified
    client: Certified
    tokens: TokenEndpoint | None = None
    realm: Realm | None = None

    def let_in(self, user: str, password: str) -> None:
        """Give a user a password for both kinds of SCRAM, instead of the one that it had."""
        client = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 3})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            client.alter_user_scram_credentials([change])[user].result(timeout=30)

    def connection(self, listener: str, **properties: str) -> Connection:
        """A connection that trusts the broker's authority unless it names a store; properties have `_` for `.`."""
        own = {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": self.root.pem}
        trust = {} if "ssl_truststore_location" in properties else own
        servers = properties.pop("bootstrap_servers", self.cluster.bootstrap_servers_of(listener))
        return connection_of(servers, cluster="secure", **(trust | properties))

    def with_login(self, mechanism: str, options: str, *, tls: bool = True, **properties: str) -> Connection:
        """On a listener for SASL, with these options of the mechanism's login module."""
        return self.connection(
            "PASSWORD" if tls else "OPEN",
            **{
                "security_protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
                "sasl_mechanism": mechanism,
                "sasl_jaas_config": f"{MODULES[mechanism]} required {options};",
                **properties,
            },
        )

    def with_password(
        self,
        mechanism: str = "PLAIN",
        user: str = ADMIN,
        password: str = ADMIN_PASSWORD,
        *,
        tls: bool = True,
        **properties: str,
    ) -> Connection:
        """By a password."""
        options = f'username="{user}" password="{quoted(password)}"'
        return self.with_login(mechanism, options, tls=tls, **properties)

    def with_token(
        self, *, secret: str = SERVICE_SECRET, client_id: str = SERVICE, tls: bool = True, **properties: str
    ) -> Connection:
        """By a token from the token endpoint."""
        assert self.tokens is not None
        return self.with_login(
            "OAUTHBEARER",
            f'clientId="{client_id}" clientSecret="{secret}"',
            tls=tls,
            **{"sasl_oauthbearer_token_endpoint_url": self.tokens.url, **properties},
        )

    def with_ticket(self, keytab: Path, *, principal: str = SERVICE, tls: bool = True, **properties: str) -> Connection:
        """By Kerberos."""
        assert self.realm is not None
        options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{self.realm.name}"'
        return self.with_login(
            "GSSAPI", options, tls=tls, **{"sasl_kerberos_service_name": KERBEROS_SERVICE, **properties}
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


def quoted(text: str) -> str:
    """A value as it stands between the double quotes of a JAAS option."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


@contextmanager
def secure_cluster(
    folder: Path,
    jars: Path,
    *,
    name: str = "secure",
    root: Certified | None = None,
    tokens: TokenEndpoint | None = None,
    realm: Realm | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Iterator[SecureCluster]:
    """Start the broker, and stop it.

    Args:
        folder: an empty one.
        jars: of the broker.
        name: for messages.
        root: signs the broker's certificate; a fresh authority if None.
        tokens: whose tokens it believes; without it there is no OAUTHBEARER.
        realm: where it has its principal; without it there is no GSSAPI.
        overrides: further broker properties.
    """
    root = root or Certified.root("Root")
    middle = root.issue("Middle", authority=True)
    stores = folder / "stores"
    stores.mkdir(parents=True)
    (stores / "broker.p12").write_bytes(middle.issue("broker", addresses=(LOOPBACK,)).keystore())
    (stores / "trust.p12").write_bytes(root.truststore())
    mechanisms = {
        "PLAIN": f'user_{ADMIN}="{quoted(ADMIN_PASSWORD)}"',
        "SCRAM-SHA-256": "",
        "SCRAM-SHA-512": "",
    }
    more: dict[str, str] = {}
    flags: list[str] = []
    if tokens is not None:
        mechanisms["OAUTHBEARER"] = ""
        keys = tokens.write_jwks(stores / "jwks.json")
        flags.append(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}")
        more |= {
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        }
    if realm is not None:
        principal = f"{KERBEROS_SERVICE}/{LOOPBACK}"
        keytab = realm.keytab(principal)
        mechanisms["GSSAPI"] = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{realm.name}"'
        flags.append(f"-Djava.security.krb5.conf={realm.krb5_conf}")
        more["sasl.kerberos.service.name"] = KERBEROS_SERVICE
    for listener in ("open", "password"):
        prefix = f"listener.name.{listener}"
        more[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(mechanisms)
        for mechanism, options in mechanisms.items():
            login = f"{MODULES[mechanism]} required {options}".rstrip() + ";"
            more[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = login
        if tokens is not None:
            more[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = _VALIDATOR
    settings = {
        **WITH_ACLS,
        "super.users": ";".join(f"User:{user}" for user in ("ANONYMOUS", ADMIN, SERVICE, "CN=client")),
        "ssl.keystore.location": str(stores / "broker.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(stores / "trust.p12"),
        "ssl.truststore.password": PASSWORD,
        "listener.name.mutual.ssl.client.auth": "required",
        **more,
        **(overrides or {}),
    }
    cluster = KafkaCluster(
        name,
        directory=folder / name,
        jars=jars,
        overrides=settings,
        listeners=LISTENERS,
        jvm_flags=(*FAST_START_JVM, *flags),
    )
    with cluster:
        secured = SecureCluster(cluster, root, middle.issue("client"), tokens, realm)
        secured.let_in(ADMIN, ADMIN_PASSWORD)
        yield secured
