"""How copiers reach the clusters: without TLS, or with TLS and a trust store like Java's clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.ports import LOOPBACK
from tests.support.security.pki import PASSWORD, Certified

_CLEAR, _TLS = "PLAINTEXT", "TLS"
#: For `KafkaCluster`: the connections between the brokers, and those of the bench itself, use no TLS.
LISTENERS: Mapping[str, str] = {_CLEAR: "PLAINTEXT", _TLS: "SSL"}


@dataclass(frozen=True, slots=True)
class Transport:
    """Addresses of both clusters, and the settings of both clusters' clients."""

    source_bootstrap: str
    target_bootstrap: str
    #: Of a Java client, without the cluster's alias.
    client: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Certificates:
    """A CA for this run, and the brokers' certificates."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """Write the stores that brokers and copiers read."""
        folder.mkdir(parents=True)
        root = Certified.root("bench")
        made = cls(folder)
        made._broker.write_bytes(root.issue("broker", addresses=(LOOPBACK,)).keystore())
        made._trusted.write_bytes(root.truststore())
        return made

    @property
    def broker_settings(self) -> dict[str, str]:
        """For server.properties."""
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self._broker),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        }

    def transport(self, source: KafkaCluster, target: KafkaCluster, *, tls: bool) -> Transport:
        """Return the transport to both clusters."""
        if not tls:
            return Transport(source.bootstrap_servers_of(_CLEAR), target.bootstrap_servers_of(_CLEAR))
        return Transport(
            source.bootstrap_servers_of(_TLS),
            target.bootstrap_servers_of(_TLS),
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PKCS12",
                "ssl.truststore.location": str(self._trusted),
                "ssl.truststore.password": PASSWORD,
            },
        )

    @property
    def _broker(self) -> Path:
        return self.folder / "broker.p12"

    @property
    def _trusted(self) -> Path:
        return self.folder / "trusted.p12"
