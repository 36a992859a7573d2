"""SASL logins: Java's `sasl.*` properties as values for both Python clients.

Names and defaults are those of Java's `SaslConfigs`. The values are picklable and need no files later; files that must
be on disk, and tokens, are created when a client is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from mirror_lib.cluster.auth.jaas import JaasEntry, parse_jaas
from mirror_lib.cluster.auth.unsupported import refuse_java_only
from mirror_lib.config.security.cloud_classes import AWS_MSK_IAM, MECHANISMS
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.feature import Hook
from mirror_lib.installed_features import provided


class Login(Protocol):
    """One SASL mechanism with its parameters."""

    @property
    def mechanism(self) -> str:
        """Its name in Kafka."""
        ...

    def librdkafka(self, where: Where) -> dict[str, Any]:
        """The properties of librdkafka.

        Raises:
            MirrorError: a prerequisite of the mechanism, such as a token, is not available.
        """
        ...

    def aiokafka(self, where: Where) -> dict[str, Any]:
        """The keyword arguments of aiokafka's client.

        Raises:
            MirrorError: as `librdkafka`.
        """
        ...


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """PLAIN and SCRAM."""

    mechanism: str
    user: str
    password: str = field(repr=False)

    def librdkafka(self, where: Where) -> dict[str, Any]:
        """As `Login.librdkafka`."""
        del where
        return {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}

    def aiokafka(self, where: Where) -> dict[str, Any]:
        """As `Login.aiokafka`."""
        del where
        return {
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }


class HostRule(Protocol):
    """The hosts that may get a login's secrets."""

    def refuse_others(self, hosts: Iterable[str], protocol: str, where: Where) -> None:
        """Check hosts.

        Raises:
            ConfigurationError: a host may not get them.
        """
        ...


@runtime_checkable
class PreparedLogin(Protocol):
    """A login that obtains its secrets from elsewhere, perhaps for certain hosts only."""

    @property
    def hosts(self) -> HostRule | None:
        """None: it belongs to the configuration file, which names the hosts."""
        ...

    def prepare(self, where: Where) -> None:
        """Obtain them unless this process has them, which may take longer than a broker's response.

        Raises:
            MirrorError: there are none.
        """
        ...


class LoginReader(Protocol):
    """What a feature with logins offers."""

    @staticmethod
    def read(mechanism: str, properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> Login:
        """Parse a login; it is pickled for tasks, which therefore ask no registry.

        Raises:
            ConfigurationError: a value is unknown or missing, or a file cannot be read. Never contains secrets.
        """
        ...

    @staticmethod
    def missing() -> str | None:
        """What this installation lacks for such logins; None if it is complete."""
        ...


#: Mechanism -> the place of the core at which a feature reads its logins, the project's own feature, and its extra.
_OF_FEATURES = {
    "OAUTHBEARER": (Hook.TOKEN_LOGIN, "oauth", ""),
    AWS_MSK_IAM: (Hook.TOKEN_LOGIN, "oauth", ""),
    "GSSAPI": (Hook.KERBEROS_LOGIN, "kerberos", "kerberos"),
}


def read_sasl(properties: Mapping[str, str], where: Where) -> Login:
    """Parse the `sasl.*` part of a Java client's properties; read the files that they name.

    Raises:
        ConfigurationError: a value is unknown or missing, or a file cannot be read. Never contains secrets.
    """
    refuse_java_only(properties, "sasl.", where)
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        raise ConfigurationError(
            f"sasl.mechanism={mechanism} is not supported.", where=where, action=f"Use one of {', '.join(MECHANISMS)}."
        )
    text = properties.get("sasl.jaas.config")
    if not text:
        raise ConfigurationError(
            f"sasl.jaas.config is not set, so there are no credentials for sasl.mechanism={mechanism}.",
            where=where,
            action="Set it; a JAAS file of a Java process is not read.",
        )
    try:
        jaas = parse_jaas(text)
    except ValueError as error:
        raise ConfigurationError(
            f"sasl.jaas.config cannot be read: {error}.",
            where=where,
            action='Write it as `org.apache.kafka...LoginModule required name="value" ...;`.',
        ) from error
    if mechanism in _OF_FEATURES:
        return login_reader(mechanism, where).read(mechanism, properties, jaas, where)
    return _password(mechanism, jaas, where)


def login_reader(mechanism: str, where: Where) -> LoginReader:
    """Return the feature's reader of a mechanism's logins.

    Raises:
        ConfigurationError: the feature is not installed.
    """
    hook, feature, extra = _OF_FEATURES[mechanism]
    try:
        found: Any = provided(hook, by=feature, extra=extra)
    except ConfigurationError as error:
        raise ConfigurationError(f"sasl.mechanism={mechanism} {error.what}", where=where, action=error.action) from None
    reader: LoginReader = found
    return reader


def _password(mechanism: str, jaas: JaasEntry, where: Where) -> PasswordLogin:
    if jaas.options.get("tokenauth", "").lower() == "true":
        raise ConfigurationError(
            "sasl.jaas.config uses a delegation token (tokenauth), which is not supported.",
            where=where,
            action="Use the password of the user.",
        )
    missing = [name for name in ("username", "password") if not jaas.options.get(name)]
    if missing:
        raise ConfigurationError(
            f"sasl.jaas.config is missing {' and '.join(missing)}, needed by sasl.mechanism={mechanism}.",
            where=where,
            action="Add it as an option of the login module.",
        )
    return PasswordLogin(mechanism, jaas.options["username"], jaas.options["password"])
