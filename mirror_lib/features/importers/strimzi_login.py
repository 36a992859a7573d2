"""The connection of a cluster of a Strimzi resource, as settings of Kafka's clients. Pure.

The rules are those of Strimzi's `KafkaMirrorMaker2Connectors.addClusterToMirrorMaker2ConnectorConfig`. Secrets are
variables `${strimzisecrets:namespace/name:key}`, as Strimzi 0.49 and newer write them; older versions mounted the same
secrets as files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connect_json import texts_of
from mirror_lib.features.importers.kubernetes_yaml import is_null
from mirror_lib.features.importers.oauth_options import strimzi_oauth
from mirror_lib.features.importers.questions import ANY_TEXT, Answers, Question

SECRETS = "strimzisecrets"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SCRAMS = {"scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"}
#: Names that `KafkaClientAuthenticationCustom` accepts.
_CUSTOM = ("ssl.keystore.", "sasl.")
#: Suffixes of Strimzi's own secrets with the certificate of a cluster's CA, in which `ca.crt` is the current one.
_CA_SECRETS = ("-cluster-ca-cert", "-clients-ca-cert")


@dataclass(slots=True)
class Login:
    """The login of one cluster: settings without a prefix, and notes for the reader."""

    settings: dict[str, str] = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)
    #: Settings that a `custom` login does not accept.
    dropped: dict[str, str] = field(default_factory=dict, repr=False)


def read_login(cluster: Mapping[str, Any], where: str, namespace: str | None, answers: Answers) -> Login:
    """Return the connection settings of a cluster of `spec`.

    Raises:
        ConfigurationError: a part has another form than Strimzi's.
    """
    reader = _Reader(where, str(cluster.get("alias")), namespace, answers)
    reader.read(cluster)
    return reader.login


def secret_variable(secret: Any, where: str, namespace: str | None, key_names: tuple[str, ...]) -> str:
    """Return the variable for a reference such as `{secretName: x, key: y}`.

    Raises:
        ConfigurationError: it has another form.
    """
    if not isinstance(secret, dict) or is_null(secret.get("secretName")):
        raise ConfigurationError(f"{where} must have a secretName.", action="Correct the resource.")
    key = next((secret[name] for name in key_names if not is_null(secret.get(name))), None)
    if not isinstance(key, str) or not isinstance(secret["secretName"], str):
        raise ConfigurationError(f"{where} must have {' or '.join(key_names)}.", action="Correct the resource.")
    return _variable(secret["secretName"], key, namespace)


def _variable(name: str, key: str, namespace: str | None) -> str:
    path = name if namespace is None else f"{namespace}/{name}"
    return f"${{{SECRETS}:{path}:{key}}}"


class _Reader:
    def __init__(self, where: str, alias: str, namespace: str | None, answers: Answers) -> None:
        self.login = Login()
        self._alias = alias
        self._where, self._namespace, self._answers = where, namespace, answers

    def read(self, cluster: Mapping[str, Any]) -> None:
        settings = self.login.settings
        tls = cluster.get("tls")
        encrypted = not is_null(tls)
        if encrypted:
            certificates = list(self._trusted_certificates(tls, f"{self._where}.tls"))
            if certificates:
                settings["ssl.truststore.certificates"] = "\n".join(certificates)
                settings["ssl.truststore.type"] = "PEM"
        protocol = "SSL" if encrypted else "PLAINTEXT"
        login = cluster.get("authentication")
        if not is_null(login):
            with_sasl = self._authentication(login, f"{self._where}.authentication")
            if with_sasl:
                protocol = "SASL_SSL" if encrypted else "SASL_PLAINTEXT"
        settings["security.protocol"] = protocol

    def _trusted_certificates(self, tls: Any, where: str) -> Iterator[str]:
        if not isinstance(tls, dict):
            raise ConfigurationError(f"{where} must be an object.", action="Correct the resource.")
        listed = tls.get("trustedCertificates")
        if is_null(listed):
            return
        yield from self._certificates(listed, f"{where}.trustedCertificates")

    def _certificates(self, listed: Any, where: str) -> Iterator[str]:
        if not isinstance(listed, list):
            raise ConfigurationError(f"{where} must be a list.", action="Correct the resource.")
        for index, each in enumerate(listed):
            if not isinstance(each, dict) or not isinstance(each.get("secretName"), str):
                raise ConfigurationError(f"{where}[{index}] must have a secretName.", action="Correct the resource.")
            name, certificate = each["secretName"], each.get("certificate")
            if isinstance(certificate, str) and not is_null(certificate):
                yield _variable(name, certificate, self._namespace)
                continue
            for key in self._of_pattern(name, each.get("pattern"), f"{where}[{index}]"):
                yield _variable(name, key, self._namespace)

    def _of_pattern(self, name: str, pattern: Any, where: str) -> tuple[str, ...]:
        """Return the matching keys of a secret: an answer, because only the secret shows them."""
        if not isinstance(pattern, str):
            raise ConfigurationError(f"{where} has neither certificate nor pattern.", action="Correct the resource.")
        if name.endswith(_CA_SECRETS) and pattern in ("*.crt", "*"):
            self.login.notes.append(
                f"{where}: the pattern {pattern} of the secret {name} was replaced by its key ca.crt, the current "
                "authority. During the rotation of an authority, add the variables of the other *.crt keys."
            )
            return ("ca.crt",)
        answer = self._answers.ask(
            Question(
                f"secret.{name}",
                f"{where} uses all keys of the secret {name} that match {pattern}, which only the secret contains "
                f"(kubectl describe secret {name}).",
                ((ANY_TEXT, "the names of the keys, separated by commas"),),
            )
        )
        return () if answer is None else tuple(part.strip() for part in answer.split(",") if part.strip())

    def _authentication(self, login: Any, where: str) -> bool:
        """Read it; return True if it uses SASL."""
        if not isinstance(login, dict):
            raise ConfigurationError(f"{where} must be an object.", action="Correct the resource.")
        kind = login.get("type")
        if kind == "tls":
            self._mutual_tls(login.get("certificateAndKey"), f"{where}.certificateAndKey")
            return False
        if kind == "plain":
            self._password("PLAIN", _PLAIN, login, where)
        elif isinstance(kind, str) and kind in _SCRAMS:
            self._password(_SCRAMS[kind], _SCRAM, login, where)
        elif kind == "oauth":
            self._oauth(login, where)
        elif kind == "custom":
            return self._custom(login, where)
        else:
            known = ", ".join(("tls", "plain", *_SCRAMS, "oauth", "custom"))
            raise ConfigurationError(f"{where}.type must be one of {known}.", action="Correct the resource.")
        return True

    def _mutual_tls(self, pair: Any, where: str) -> None:
        settings = self.login.settings
        settings["ssl.keystore.certificate.chain"] = secret_variable(pair, where, self._namespace, ("certificate",))
        settings["ssl.keystore.key"] = secret_variable(pair, where, self._namespace, ("key",))
        settings["ssl.keystore.type"] = "PEM"

    def _password(self, mechanism: str, module: str, login: Mapping[str, Any], where: str) -> None:
        user = login.get("username")
        if not isinstance(user, str):
            raise ConfigurationError(f"{where}.username is missing.", action="Correct the resource.")
        variable = secret_variable(
            login.get("passwordSecret"), f"{where}.passwordSecret", self._namespace, ("password",)
        )
        self.login.settings["sasl.mechanism"] = mechanism
        self.login.settings["sasl.jaas.config"] = f'{module} required username="{user}" password="{variable}";'

    def _oauth(self, login: Mapping[str, Any], where: str) -> None:
        """Read `type: oauth`, which v1beta2 has (`AuthenticationUtils.oauthJaasOptions`)."""
        options: dict[str, str] = {}
        for name, option in _OAUTH_TEXTS.items():
            value = login.get(name)
            if isinstance(value, str) and not is_null(value):
                options[option] = value
        for name, option in _OAUTH_SECRETS.items():
            if not is_null(login.get(name)):
                options[option] = secret_variable(login[name], f"{where}.{name}", self._namespace, ("key", "password"))
        if login.get("disableTlsHostnameVerification") == "true":
            options["oauth.ssl.endpoint.identification.algorithm"] = ""
        if not is_null(login.get("tlsTrustedCertificates")):
            certificates = self._certificates(login["tlsTrustedCertificates"], f"{where}.tlsTrustedCertificates")
            options["oauth.ssl.truststore.certificates"] = "\n".join(certificates)
        extensions = login.get("saslExtensions")
        if not is_null(extensions):
            for name, value in texts_of(extensions, f"{where}.saslExtensions").items():
                options[f"oauth.sasl.extension.{name}"] = value
        self.login.settings["sasl.mechanism"] = "OAUTHBEARER"
        native = strimzi_oauth(options, where, self._alias, self._answers)
        self.login.settings |= native.settings
        self.login.notes += native.notes

    def _custom(self, login: Mapping[str, Any], where: str) -> bool:
        given = login.get("config")
        for name, value in texts_of({} if is_null(given) else given, f"{where}.config").items():
            target = self.login.settings if name.startswith(_CUSTOM) else self.login.dropped
            target[name] = value
        return login.get("sasl") == "true"


_OAUTH_TEXTS = {
    "clientId": "oauth.client.id",
    "username": "oauth.password.grant.username",
    "tokenEndpointUri": "oauth.token.endpoint.uri",
    "scope": "oauth.scope",
    "audience": "oauth.audience",
    "accessTokenLocation": "oauth.access.token.location",
    "clientAssertionLocation": "oauth.client.assertion.location",
    "clientAssertionType": "oauth.client.assertion.type",
    "accessTokenIsJwt": "oauth.access.token.is.jwt",
    "maxTokenExpirySeconds": "oauth.max.token.expiry.seconds",
    "connectTimeoutSeconds": "oauth.connect.timeout.seconds",
    "readTimeoutSeconds": "oauth.read.timeout.seconds",
    "httpRetries": "oauth.http.retries",
    "httpRetryPauseMs": "oauth.http.retry.pause.millis",
    "enableMetrics": "oauth.enable.metrics",
    "includeAcceptHeader": "oauth.include.accept.header",
}
_OAUTH_SECRETS = {
    "clientSecret": "oauth.client.secret",
    "accessToken": "oauth.access.token",
    "refreshToken": "oauth.refresh.token",
    "passwordSecret": "oauth.password.grant.password",
    "clientAssertion": "oauth.client.assertion",
}
