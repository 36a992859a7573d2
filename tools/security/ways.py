"""The login mechanisms of Kafka, and the properties with which a user of MirrorMaker 2 configures each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.security.pki import PASSWORD
from tests.support.security.secure_cluster import (
    ADMIN,
    ADMIN_PASSWORD,
    KERBEROS_SERVICE,
    MODULES,
    SERVICE,
    SERVICE_SECRET,
    quoted,
)

#: Of the key inside a JKS store, which may differ from the store's.
KEY_PASSWORD = "key-changeit"
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@dataclass(frozen=True, slots=True)
class Way:
    """A security protocol, with the SASL mechanism if it is one of SASL's."""

    protocol: str
    mechanism: str | None = None
    client_certificate: bool = False

    @property
    def name(self) -> str:
        """Name for display."""
        if self.client_certificate:
            return "mutual TLS"
        return self.protocol if self.mechanism is None else f"{self.mechanism} over {self.protocol}"

    @property
    def listener(self) -> str:
        """The listener of the brokers."""
        if self.client_certificate:
            return "MUTUAL"
        return {"SSL": "TLS", "SASL_PLAINTEXT": "OPEN", "SASL_SSL": "PASSWORD"}[self.protocol]

    @property
    def needs_kerberos(self) -> bool:
        """True if the installed client does not support it."""
        return self.mechanism == "GSSAPI"


WAYS = (
    Way("SSL"),
    Way("SSL", client_certificate=True),
    *(Way(protocol, mechanism) for mechanism in MODULES for protocol in ("SASL_PLAINTEXT", "SASL_SSL")),
)


@dataclass(frozen=True, slots=True)
class Material:
    """The files and addresses that the properties name."""

    jks_trust: Path
    pkcs12_trust: Path
    jks_key: Path
    pkcs12_key: Path
    token_endpoint: str
    #: Trusts the token endpoint.
    endpoint_trust: Path
    keytab: Path
    realm: str


def properties(way: Way, material: Material, *, source: bool) -> Mapping[str, str]:
    """Return the settings of a user for a cluster; source and target have different kinds of stores."""
    found = {"security.protocol": way.protocol}
    if way.protocol.endswith("SSL"):
        trust = material.jks_trust if source else material.pkcs12_trust
        found |= {
            "ssl.truststore.type": "JKS" if source else "PKCS12",
            "ssl.truststore.location": str(trust),
            "ssl.truststore.password": PASSWORD,
        }
    if way.client_certificate:
        found |= {
            "ssl.keystore.type": "JKS" if source else "PKCS12",
            "ssl.keystore.location": str(material.jks_key if source else material.pkcs12_key),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": KEY_PASSWORD if source else PASSWORD,
        }
    if way.mechanism is not None:
        login = f"{MODULES[way.mechanism]} required {_options(way.mechanism, material)};"
        found |= {"sasl.mechanism": way.mechanism, "sasl.jaas.config": login}
    if way.mechanism == "OAUTHBEARER":
        found |= {
            "sasl.login.callback.handler.class": _OAUTH_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": material.token_endpoint,
        }
    if way.mechanism == "GSSAPI":
        found["sasl.kerberos.service.name"] = KERBEROS_SERVICE
    return found


def _options(mechanism: str, material: Material) -> str:
    if mechanism == "OAUTHBEARER":
        trust = f'ssl.truststore.location="{material.endpoint_trust}" ssl.truststore.password="{PASSWORD}"'
        return f'clientId="{SERVICE}" clientSecret="{SERVICE_SECRET}" scope="kafka" {trust}'
    if mechanism == "GSSAPI":
        principal = f"{SERVICE}@{material.realm}"
        return f'useKeyTab=true storeKey=true keyTab="{material.keytab}" principal="{principal}"'
    return f'username="{ADMIN}" password="{quoted(ADMIN_PASSWORD)}"'
