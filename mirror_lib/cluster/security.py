"""How a client proves who it is and whom it trusts: Kafka's Java security properties, mapped to both Python clients.

Names and defaults are those of Java's `SslConfigs` and `SaslConfigs`. Stores are read once, where the configuration
file lies, and travel as PEM text: executors need no files.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives import serialization

from mirror_lib.cluster.jaas import JaasEntry, parse_jaas
from mirror_lib.cluster.keystores import (
    KeyPair,
    KeystoreError,
    pem_certificates,
    read_keystore,
    read_pem_key,
    read_truststore,
)
from mirror_lib.errors import ConfigurationError, Where

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISMS = (*_PASSWORD_MECHANISMS, "OAUTHBEARER", "GSSAPI")

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Tls:
    """What a TLS connection trusts and shows."""

    #: PEM; None trusts what the system trusts.
    trusted: str | None = None
    client: KeyPair | None = None
    #: Whether the broker's certificate must name the host that was connected to.
    check_host: bool = True

    def librdkafka(self) -> dict[str, str]:
        """The properties of librdkafka."""
        options = {"ssl.endpoint.identification.algorithm": "https" if self.check_host else "none"}
        if self.trusted is not None:
            options["ssl.ca.pem"] = self.trusted
        if self.client is not None:
            options["ssl.certificate.pem"] = self.client.certificate_chain
            options["ssl.key.pem"] = self.client.key
        return options

    def context(self) -> ssl.SSLContext:
        """The same for Python's own TLS."""
        context = ssl.create_default_context(cadata=self.trusted)
        context.check_hostname = self.check_host
        # As Java: any certificate in the trust store is trusted, be it an intermediate one, or one that lacks the
        # extensions which Python demands from 3.13 on.
        context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        if self.client is not None:
            _load_client(context, self.client)
        return context


@dataclass(frozen=True, slots=True)
class Sasl:
    """A SASL mechanism with what it needs, already under librdkafka's names."""

    mechanism: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """A `security.protocol` with its parts; a part is None when the protocol has no use for it."""

    protocol: str = "PLAINTEXT"
    tls: Tls | None = None
    sasl: Sasl | None = None

    def librdkafka(self) -> dict[str, str]:
        """The properties of librdkafka."""
        options = {"security.protocol": self.protocol}
        if self.tls is not None:
            options |= self.tls.librdkafka()
        if self.sasl is not None:
            options |= {"sasl.mechanism": self.sasl.mechanism, **self.sasl.options}
        return options

    def aiokafka(self, where: Where) -> dict[str, Any]:
        """The keyword arguments of aiokafka's client.

        Raises:
            ConfigurationError: the mechanism is one that the data path cannot speak.
        """
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self.tls is not None:
            options["ssl_context"] = self.tls.context()
        if self.sasl is not None:
            if self.sasl.mechanism not in _PASSWORD_MECHANISMS:
                raise ConfigurationError(
                    f"records cannot be copied with sasl.mechanism={self.sasl.mechanism}.",
                    where=where,
                    action=f"Use one of {', '.join(_PASSWORD_MECHANISMS)}, or TLS client certificates.",
                )
            options["sasl_mechanism"] = self.sasl.mechanism
            options["sasl_plain_username"] = self.sasl.options["sasl.username"]
            options["sasl_plain_password"] = self.sasl.options["sasl.password"]
        return options


def read_security(properties: Mapping[str, str], where: Where) -> Security:
    """Read the security part of a Java client's properties; stores that they name are opened.

    Raises:
        ConfigurationError: a value is unknown or missing, or a store cannot be used. Secrets are never repeated.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise ConfigurationError(
            f"security.protocol={protocol} is unknown.", where=where, action=f"Use one of {', '.join(_PROTOCOLS)}."
        )
    return Security(
        protocol,
        _read_tls(properties, where) if protocol.endswith("SSL") else None,
        _read_sasl(properties, where) if protocol.startswith("SASL") else None,
    )


def _read_tls(properties: Mapping[str, str], where: Where) -> Tls:
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise ConfigurationError(
            f"ssl.endpoint.identification.algorithm={algorithm} is unknown.",
            where=where,
            action="Leave it out to have host names checked, or set it to nothing to switch the check off.",
        )
    return Tls(_trusted(properties, where), _client(properties, where), algorithm == "https")


def _trusted(properties: Mapping[str, str], where: Where) -> str | None:
    inline, location = properties.get("ssl.truststore.certificates"), properties.get("ssl.truststore.location")
    if inline:
        _alone("ssl.truststore.certificates", "ssl.truststore.location", location, where)
        return _guarded("ssl.truststore.certificates", where, lambda: _inline_certificates(inline))
    if location:
        password = properties.get("ssl.truststore.password")
        return _guarded(
            f"ssl.truststore.location={location}",
            where,
            lambda: read_truststore(Path(location).read_bytes(), password),
        )
    return None


def _client(properties: Mapping[str, str], where: Where) -> KeyPair | None:
    key, location = properties.get("ssl.keystore.key"), properties.get("ssl.keystore.location")
    key_password = properties.get("ssl.key.password")
    if key:
        _alone("ssl.keystore.key", "ssl.keystore.location", location, where)
        chain = properties.get("ssl.keystore.certificate.chain", "")
        return _guarded(
            "ssl.keystore.key with ssl.keystore.certificate.chain",
            where,
            lambda: read_pem_key(key, chain, key_password),
        )
    if location:
        password = properties.get("ssl.keystore.password")
        return _guarded(
            f"ssl.keystore.location={location}",
            where,
            lambda: read_keystore(Path(location).read_bytes(), password, key_password),
        )
    return None


def _inline_certificates(text: str) -> str:
    certificates = pem_certificates(text)
    if not certificates:
        raise KeystoreError("it holds no certificates")
    return "".join(certificates)


def _alone(name: str, other_name: str, other: str | None, where: Where) -> None:
    if other:
        raise ConfigurationError(f"{name} and {other_name} exclude each other.", where=where, action="Keep one.")


def _guarded(what: str, where: Where, read: Callable[[], _Read]) -> _Read:
    try:
        return read()
    except KeystoreError as error:
        raise ConfigurationError(
            f"{what}: {str(error).rstrip('.')}.", where=where, action="Correct the store or its password."
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{what}: {error.strerror or error}.",
            where=where,
            action="The file must be readable where runs are planned.",
        ) from error


def _load_client(context: ssl.SSLContext, client: KeyPair) -> None:
    """Python reads a key from files only, so it lies on disk for a moment: encrypted, with a password nobody keeps."""
    password = secrets.token_bytes(24).hex().encode()
    key = serialization.load_pem_private_key(client.key.encode(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    with tempfile.TemporaryDirectory(prefix="mirror-tls-") as folder:
        path = Path(folder, "client.pem")
        path.write_bytes(encrypted + client.certificate_chain.encode())
        context.load_cert_chain(path, password=password)


def _read_sasl(properties: Mapping[str, str], where: Where) -> Sasl:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in _MECHANISMS:
        raise ConfigurationError(
            f"sasl.mechanism={mechanism} is not supported.", where=where, action=f"Use one of {', '.join(_MECHANISMS)}."
        )
    text = properties.get("sasl.jaas.config")
    if not text:
        raise ConfigurationError(
            f"sasl.jaas.config is not set, so there are no credentials for sasl.mechanism={mechanism}.",
            where=where,
            action="Set it; a JAAS file of the Java process is not read.",
        )
    try:
        jaas = parse_jaas(text)
    except ValueError as error:
        raise ConfigurationError(
            f"sasl.jaas.config cannot be read: {error}.",
            where=where,
            action='Write it as `org.apache.kafka...LoginModule required name="value" ...;`.',
        ) from error
    if mechanism == "OAUTHBEARER":
        return Sasl(mechanism, _oauthbearer(properties, jaas, where))
    if mechanism == "GSSAPI":
        return Sasl(mechanism, _gssapi(properties, jaas, where))
    return Sasl(mechanism, _password(mechanism, jaas, where))


def _password(mechanism: str, jaas: JaasEntry, where: Where) -> dict[str, str]:
    if jaas.options.get("tokenauth", "").lower() == "true":
        raise ConfigurationError(
            "sasl.jaas.config asks for a delegation token (tokenauth), which is not supported.",
            where=where,
            action="Use the user's own password.",
        )
    user, password = _options(mechanism, jaas, ("username", "password"), where)
    return {"sasl.username": user, "sasl.password": password}


def _oauthbearer(properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> dict[str, str]:
    """The client-credentials grant (KIP-768), the one that both librdkafka and Java speak."""
    endpoint = properties.get("sasl.oauthbearer.token.endpoint.url")
    if not endpoint:
        raise ConfigurationError(
            "sasl.oauthbearer.token.endpoint.url is not set.",
            where=where,
            action="Set it; of the ways to get a token only client credentials from an endpoint are supported.",
        )
    identity, secret = _options("OAUTHBEARER", jaas, ("clientId", "clientSecret"), where)
    options = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.id": identity,
        "sasl.oauthbearer.client.secret": secret,
    }
    if scope := jaas.options.get("scope"):
        options["sasl.oauthbearer.scope"] = scope
    prefix = "extension_"
    extensions = [
        f"{name.removeprefix(prefix)}={value}" for name, value in jaas.options.items() if name.startswith(prefix)
    ]
    if extensions:
        options["sasl.oauthbearer.extensions"] = ",".join(extensions)
    return options


def _gssapi(properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> dict[str, str]:
    service = properties.get("sasl.kerberos.service.name") or jaas.options.get("serviceName")
    if not service:
        raise ConfigurationError(
            "sasl.kerberos.service.name is not set.", where=where, action="Set it to the brokers' service, often kafka."
        )
    options = {"sasl.kerberos.service.name": service}
    for java, native in (("principal", "sasl.kerberos.principal"), ("keyTab", "sasl.kerberos.keytab")):
        if value := jaas.options.get(java):
            options[native] = value
    return options


def _options(mechanism: str, jaas: JaasEntry, names: tuple[str, ...], where: Where) -> list[str]:
    missing = [name for name in names if not jaas.options.get(name)]
    if missing:
        raise ConfigurationError(
            f"sasl.jaas.config does not give {' and '.join(missing)}, which sasl.mechanism={mechanism} needs.",
            where=where,
            action="Add it as an option of the login module.",
        )
    return [jaas.options[name] for name in names]
