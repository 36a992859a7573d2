"""TLS configuration: Java's `ssl.*` properties for both Python clients.

Names and defaults are those of Java's `SslConfigs`. Stores are read once, on the machine with the configuration file,
and passed on as PEM text: executors need no files.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from cryptography.hazmat.primitives import serialization

from mirror_lib.cluster.auth.keystores import (
    KeyPair,
    KeystoreError,
    pem_certificates,
    read_keystore,
    read_pem_key,
    read_truststore,
)
from mirror_lib.cluster.auth.unsupported import refuse_java_only
from mirror_lib.config.security.tls import TlsVersions, TlsVersionsError, tls_versions
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.operator_limits import read_named

#: A suite of TLS 1.2 with a pre-shared key that no peer has: librdkafka, which has no setting for versions, can then
#: use only TLS 1.3.
_ONLY_TLS13 = "PSK-AES256-GCM-SHA384"

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Tls:
    """Trusted certificates, client certificate and versions of TLS connections."""

    #: PEM; None uses the system's trust store.
    trusted: str | None = None
    client: KeyPair | None = None
    #: True if the broker's certificate must contain the host name of the connection.
    check_host: bool = True
    versions: TlsVersions = field(default_factory=TlsVersions)

    def librdkafka(self) -> dict[str, str]:
        """The properties of librdkafka. It always accepts TLS 1.3 if a broker offers it."""
        options = {"ssl.endpoint.identification.algorithm": "https" if self.check_host else "none"}
        if self.trusted is not None:
            options["ssl.ca.pem"] = self.trusted
        if self.client is not None:
            options["ssl.certificate.pem"] = self.client.certificate_chain
            options["ssl.key.pem"] = self.client.key
        if not self.versions.tls12:
            options["ssl.cipher.suites"] = _ONLY_TLS13
        elif self.versions.ciphers is not None:
            options["ssl.cipher.suites"] = ":".join(self.versions.ciphers)
        return options

    def context(self) -> ssl.SSLContext:
        """The same for Python's `ssl` module."""
        context = ssl.create_default_context(cadata=self.trusted)
        context.check_hostname = self.check_host
        # As in Java, any certificate in the trust store is trusted, even an intermediate one, or one without extensions
        # that Python requires since 3.13.
        context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        context.minimum_version = ssl.TLSVersion.TLSv1_2 if self.versions.tls12 else ssl.TLSVersion.TLSv1_3
        context.maximum_version = ssl.TLSVersion.TLSv1_3 if self.versions.tls13 else ssl.TLSVersion.TLSv1_2
        if self.versions.ciphers is not None:
            context.set_ciphers(":".join(self.versions.ciphers))
        if self.client is not None:
            _load_client(context, self.client)
        return context


def read_tls(properties: Mapping[str, str], where: Where, *, prefix: str = "") -> Tls:
    """Parse the `ssl.*` part of a Java client's properties; read the stores that they name.

    Args:
        properties: of the client, or the options of a login module, which may have the same names.
        where: for errors.
        prefix: text before each name in errors.

    Raises:
        ConfigurationError: a value is unknown, or a store cannot be used. Never contains secrets.
    """
    refuse_java_only(properties, "ssl.", where, prefix=prefix)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise ConfigurationError(
            f"{prefix}ssl.endpoint.identification.algorithm={algorithm} is unknown.",
            where=where,
            action="Remove it to verify host names, or leave it empty to disable the verification.",
        )
    reader = _Reader(properties, where, prefix)
    return Tls(reader.trusted_certificates(), reader.client(), algorithm == "https", reader.versions())


class _Reader:
    """The properties of one client."""

    def __init__(self, properties: Mapping[str, str], where: Where, prefix: str) -> None:
        self._properties = properties
        self._where = where
        self._prefix = prefix

    def trusted_certificates(self) -> str | None:
        self._not_blank("ssl.truststore.certificates", "ssl.truststore.location")
        inline, location = self._get("ssl.truststore.certificates"), self._get("ssl.truststore.location")
        if inline:
            self._alone("ssl.truststore.certificates", "ssl.truststore.location", location)
            return self._read_store("ssl.truststore.certificates", lambda: _inline_certificates(inline))
        if location:
            password = self._get("ssl.truststore.password")
            return self._read_store(
                f"ssl.truststore.location={location}", lambda: read_truststore(read_named(Path(location)), password)
            )
        return None

    def client(self) -> KeyPair | None:
        self._not_blank("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.keystore.location")
        key, location = self._get("ssl.keystore.key"), self._get("ssl.keystore.location")
        key_password = self._get("ssl.key.password")
        if key:
            self._alone("ssl.keystore.key", "ssl.keystore.location", location)
            chain = self._get("ssl.keystore.certificate.chain") or ""
            return self._read_store(
                "ssl.keystore.key with ssl.keystore.certificate.chain", lambda: read_pem_key(key, chain, key_password)
            )
        if location:
            password = self._get("ssl.keystore.password")
            return self._read_store(
                f"ssl.keystore.location={location}",
                lambda: read_keystore(read_named(Path(location)), password, key_password),
            )
        return None

    def versions(self) -> TlsVersions:
        try:
            versions = tls_versions(self._get("ssl.enabled.protocols"), self._get("ssl.cipher.suites"))
            if versions.ciphers is not None:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(":".join(versions.ciphers))
        except TlsVersionsError as error:
            raise ConfigurationError(
                f"{self._prefix}{error}.", where=self._where, action="Use others, or remove the setting."
            ) from error
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"{self._prefix}ssl.cipher.suites: this machine's OpenSSL supports none of them.",
                where=self._where,
                action="Use others, or remove the setting.",
            ) from error
        return versions

    def _get(self, name: str) -> str | None:
        return self._properties.get(name)

    def _not_blank(self, *names: str) -> None:
        """Reject blank values: an unset variable must not silently mean the system's trust store, or no key."""
        for name in names:
            if (value := self._get(name)) is not None and not value.strip():
                raise ConfigurationError(
                    f"{self._prefix}{name} is empty.", where=self._where, action="Set a value, or remove it."
                )

    def _alone(self, name: str, other_name: str, other: str | None) -> None:
        if other:
            raise ConfigurationError(
                f"{self._prefix}{name} and {other_name} are mutually exclusive.",
                where=self._where,
                action="Remove one.",
            )

    def _read_store(self, what: str, read: Callable[[], _Read]) -> _Read:
        try:
            return read()
        except KeystoreError as error:
            raise ConfigurationError(
                f"{self._prefix}{what}: {str(error).rstrip('.')}.",
                where=self._where,
                action="Correct the store or its password.",
            ) from error
        except OSError as error:
            raise ConfigurationError(
                f"{self._prefix}{what}: {error.strerror or error}.",
                where=self._where,
                action="The file must be readable where runs are planned.",
            ) from error


def _inline_certificates(text: str) -> str:
    certificates = pem_certificates(text)
    if not certificates:
        raise KeystoreError("it contains no certificates")
    return "".join(certificates)


def _load_client(context: ssl.SSLContext, client: KeyPair) -> None:
    """Python reads keys only from files, so the key is briefly on disk: encrypted, with a discarded password."""
    password = secrets.token_bytes(24).hex().encode()
    key = serialization.load_pem_private_key(client.key.encode(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    with tempfile.TemporaryDirectory(prefix="mirror-tls-") as folder:
        path = Path(folder, "client.pem")
        path.touch(mode=0o600)
        path.write_bytes(encrypted + client.certificate_chain.encode())
        context.load_cert_chain(path, password=password)
