"""Two brokers that authenticate clients, a token endpoint and a Kerberos realm, for the duration of a test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo import jars
from mirror_lib.features.demo.ports import LOOPBACK
from mirror_lib.spark.java import find_java
from tests.support.security.kdc import Realm
from tests.support.security.pki import PASSWORD, Certified
from tests.support.security.secure_cluster import SERVICE, SERVICE_SECRET, SecureCluster, secure_cluster
from tests.support.security.token_endpoint import TokenEndpoint
from tools.security.ways import KEY_PASSWORD, Material

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Brokers:
    """Source and target, and what their clients need."""

    source: SecureCluster
    target: SecureCluster
    material: Material
    realm: Realm | None


@contextmanager
def running(folder: Path, log: Log, *, kerberos: bool) -> Iterator[Brokers]:
    """Start everything, and stop it at the end.

    Args:
        folder: an empty one.
        kerberos: start a realm.

    Raises:
        JarsUnavailableError: Kafka could not be fetched.
        BrokerStartError: a broker does not come up.
    """
    broker_jars = jars.fetch(jars.kafka_broker(), report=lambda now: log(f"fetching Kafka {now.jar_set}: {now.what}"))
    root, other_root = Certified.root("Root"), Certified.root("Identity Root")
    with ExitStack() as stack:
        provider = other_root.issue("identity", addresses=(LOOPBACK,))
        tokens = stack.enter_context(TokenEndpoint({SERVICE: SERVICE_SECRET}, provider))
        realm = stack.enter_context(Realm("MIRROR.TEST", folder / "realm")) if kerberos else None
        log("starting two brokers")
        source, target = (
            stack.enter_context(
                secure_cluster(folder / name, broker_jars, name=name, root=root, tokens=tokens, realm=realm)
            )
            for name in ("source", "target")
        )
        material = _material(folder / "stores", source, root, other_root, tokens, realm)
        yield Brokers(source, target, material, realm)


def _material(
    folder: Path,
    source: SecureCluster,
    root: Certified,
    identity_root: Certified,
    tokens: TokenEndpoint,
    realm: Realm | None,
) -> Material:
    folder.mkdir()
    stores: Mapping[str, bytes] = {
        "trust.p12": root.truststore(),
        "key.p12": source.client.keystore(),
        "identity.p12": identity_root.truststore(),
    }
    for name, content in stores.items():
        (folder / name).write_bytes(content)
    _to_jks(folder / "trust.p12", folder / "trust.jks")
    _to_jks(folder / "key.p12", folder / "key.jks", "-srcalias", "me", "-destkeypass", KEY_PASSWORD)
    return Material(
        jks_trust=folder / "trust.jks",
        pkcs12_trust=folder / "trust.p12",
        jks_key=folder / "key.jks",
        pkcs12_key=folder / "key.p12",
        token_endpoint=tokens.url,
        endpoint_trust=folder / "identity.p12",
        keytab=realm.keytab(SERVICE) if realm is not None else folder / "none.keytab",
        realm=realm.name if realm is not None else "",
    )


def _to_jks(old: Path, new: Path, *more: str) -> None:
    """Convert with Java's own program."""
    keytool = find_java().with_name("keytool")
    passwords = ("-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    stores = ("-srckeystore", str(old), "-destkeystore", str(new), "-deststoretype", "JKS")
    subprocess.run(
        [str(keytool), "-importkeystore", "-noprompt", *stores, *passwords, *more], check=True, capture_output=True
    )
