"""Logins by tokens (`sasl.mechanism=OAUTHBEARER` and Amazon's `AWS_MSK_IAM`): Java's properties, for both clients."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mirror_lib.cluster.auth.jaas import JaasEntry
from mirror_lib.cluster.auth.tls import read_tls
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.oauth.cloud_hosts import CloudHosts
from mirror_lib.features.oauth.cloud_logins import cloud_login
from mirror_lib.features.oauth.oauth_tokens import ClientCredentials, TokenFile, TokenSource, UnsecuredToken, token_of
from mirror_lib.operator_limits import read_named

_UNSECURED = "unsecuredLogin"
#: Seconds; Java has no limit of its own.
_TOKEN_TIMEOUT = 10.0
#: Seconds: Java allows a pause of 0, which doubling does not increase.
_SHORTEST_BACKOFF = 0.05
_EXTENSION_NAME, _EXTENSION_VALUE = re.compile(r"[A-Za-z]+"), re.compile(r"[\x21-\x7e \t\r\n]+")


@dataclass(frozen=True, slots=True)
class OAuthLogin:
    """OAUTHBEARER."""

    source: TokenSource
    #: SASL extensions (KIP-342).
    extensions: tuple[tuple[str, str], ...] = ()
    #: The hosts that may get the tokens; None for tokens that belong to the configuration file.
    hosts: CloudHosts | None = None
    mechanism: str = "OAUTHBEARER"

    def librdkafka(self, where: Where) -> dict[str, Any]:
        """As `Login.librdkafka`. Fetches a token now, so that both clients report the same error if it is refused.

        librdkafka then requests its own tokens if it can: if the project supplied them, confluent-kafka would delay
            every
        new client by a second.
        """
        token_of(self.source, where)
        if (own := self._asked_by_librdkafka()) is not None:
            return {"sasl.mechanism": self.mechanism, **own}

        def refresh(_: str) -> tuple[str, float, str, dict[str, str]]:
            token = token_of(self.source, where)
            return token.value, token.ends, token.principal, dict(self.extensions)

        return {"sasl.mechanism": self.mechanism, "oauth_cb": refresh}

    def prepare(self, where: Where) -> None:
        """Fetch a token unless this process has one, which may take longer than a broker's response.

        Raises:
            MirrorError: there is none.
        """
        token_of(self.source, where)

    def _asked_by_librdkafka(self) -> dict[str, str] | None:
        if not isinstance(self.source, ClientCredentials) or any("," in value for _, value in self.extensions):
            return None
        options = self.source.librdkafka()
        if options is not None and self.extensions:
            options["sasl.oauthbearer.extensions"] = ",".join(f"{name}={value}" for name, value in self.extensions)
        return options

    def aiokafka(self, where: Where) -> dict[str, Any]:
        """As `Login.aiokafka`; each new connection obtains the token."""
        from mirror_lib.features.oauth.token_exchange import TokenProvider

        provider = TokenProvider(self.source, self.extensions, where, self.hosts)
        return {"sasl_mechanism": self.mechanism, "sasl_oauth_token_provider": provider}


class TokenLogins:
    """Reads logins by tokens (`cluster.auth.sasl.LoginReader`)."""

    @staticmethod
    def read(mechanism: str, properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> OAuthLogin:
        """As `LoginReader.read`."""
        if (cloud := cloud_login(mechanism, properties, jaas, where)) is not None:
            return OAuthLogin(cloud.source, hosts=cloud.hosts)
        return _OAuthReader(properties, jaas, where).login()

    @staticmethod
    def missing() -> str | None:
        """As `LoginReader.missing`: libraries of clouds are loaded when a token is fetched."""
        return None


class _OAuthReader:
    """The token sources of Java's own callback handlers."""

    def __init__(self, properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> None:
        self._properties = properties
        self._options = jaas.options
        self._where = where
        self._subject = properties.get("sasl.oauthbearer.sub.claim.name", "").strip() or "sub"

    def login(self) -> OAuthLogin:
        endpoint = self._properties.get("sasl.oauthbearer.token.endpoint.url", "").strip()
        if not endpoint:
            if any(name.startswith(_UNSECURED) for name in self._options):
                return OAuthLogin(self._unsecured_source(), self._extensions(f"{_UNSECURED}Extension_"))
            raise self._error(
                "sasl.oauthbearer.token.endpoint.url is not set.",
                "Set it to the endpoint that issues tokens for client credentials, or to file:/path of a token.",
            )
        try:
            parts = urllib.parse.urlsplit(endpoint)
        except ValueError:
            # Its text repeats possible secrets in the URL.
            raise self._error(
                "sasl.oauthbearer.token.endpoint.url is not a valid URL.", "Write https://host:port/path or file:/path."
            ) from None
        scheme = parts.scheme.lower()
        if scheme == "file":
            return OAuthLogin(self._file(endpoint), self._extensions("extension_"))
        if scheme not in ("http", "https"):
            raise self._error(
                f"sasl.oauthbearer.token.endpoint.url starts with {scheme or 'no scheme'}.",
                "It must start with https:, http: or file:.",
            )
        if "@" in parts.netloc or "@" in parts.path:
            raise self._error(
                "sasl.oauthbearer.token.endpoint.url contains a user.",
                "Remove the user; clientId and clientSecret in sasl.jaas.config identify the client.",
            )
        return OAuthLogin(self._client_credentials(endpoint, scheme), self._extensions("extension_"))

    def _client_credentials(self, endpoint: str, scheme: str) -> TokenSource:
        pairs = (("clientId", "client.id"), ("clientSecret", "client.secret"))
        # As in Java (`ConfigOrJaas`): the property has precedence over the option of the login module.
        found = [
            self._properties.get(f"sasl.oauthbearer.client.credentials.{name}") or self._options.get(option)
            for option, name in pairs
        ]
        missing = [option for (option, _), value in zip(pairs, found, strict=True) if not value]
        if missing:
            raise self._error(
                f"sasl.jaas.config is missing {' and '.join(missing)}, needed by sasl.mechanism=OAUTHBEARER.",
                "Add it as an option of the login module, or set sasl.oauthbearer.client.credentials.client.id and "
                ".client.secret.",
            )
        if find_spec("httpx") is None:
            raise self._error(
                "Token endpoints need the Python package httpx, which is not installed.",
                "Install batch-mirror[oauth] where runs are planned and on Spark's executors.",
            )
        backoff, longest = self._seconds("sasl.login.retry.backoff.ms", 0.1), "sasl.login.retry.backoff.max.ms"
        backoff = max(backoff, _SHORTEST_BACKOFF)
        timeouts = [
            self._seconds(name, 0.0) for name in ("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms")
        ]
        return ClientCredentials(
            endpoint,
            found[0] or "",
            found[1] or "",
            scope=self._properties.get("sasl.oauthbearer.scope") or self._options.get("scope"),
            urlencode_header=self._properties.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true",
            subject_claim=self._subject,
            timeout=max(timeouts) or _TOKEN_TIMEOUT,
            backoff=backoff,
            longest_backoff=self._seconds(longest, 10.0),
            # As in Java, the options of the login module configure TLS here, not the client's own properties.
            tls=read_tls(self._options, self._where, prefix="sasl.jaas.config: ") if scheme == "https" else None,
        )

    def _file(self, endpoint: str) -> TokenSource:
        path = urllib.parse.unquote(urllib.parse.urlsplit(endpoint).path)
        try:
            content = read_named(Path(path)).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise self._error(
                f"sasl.oauthbearer.token.endpoint.url={endpoint}: {getattr(error, 'strerror', None) or 'no text'}.",
                "The file must be readable where runs are planned.",
            ) from error
        return TokenFile(path, content, self._subject)

    def _unsecured_source(self) -> TokenSource:
        claims: dict[str, Any] = {}
        for name, value in self._options.items():
            kind, _, claim = name.removeprefix(_UNSECURED).partition("_")
            if kind == "StringClaim":
                claims[claim] = value
            elif kind == "NumberClaim":
                claims[claim] = self._number(name, value)
            elif kind == "ListClaim" and value:
                # Its first character is the separator of the rest.
                claims[claim] = value[1:].split(value[0])
        principal_claim = self._options.get(f"{_UNSECURED}PrincipalClaimName", "sub")
        principal = claims.get(principal_claim)
        if not isinstance(principal, str) or not principal:
            raise self._error(
                f"sasl.jaas.config is missing {_UNSECURED}StringClaim_{principal_claim}.",
                "Add it as an option of the login module: it is the user's name.",
            )
        lifetime = self._number("lifetime", self._options.get(f"{_UNSECURED}LifetimeSeconds", "3600"))
        return UnsecuredToken(json.dumps(claims), principal, lifetime)

    def _extensions(self, prefix: str) -> tuple[tuple[str, str], ...]:
        found = [(name.removeprefix(prefix), value) for name, value in self._options.items() if name.startswith(prefix)]
        for name, value in found:
            if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
                raise self._error(
                    f"sasl.jaas.config: {prefix}{name} is not a valid SASL extension.",
                    "Names consist of letters and are not auth; values are printable ASCII (RFC 7628).",
                )
        return tuple(found)

    def _seconds(self, name: str, default: float) -> float:
        text = self._properties.get(name, "").strip()
        if not text:
            return default
        if not text.isdecimal():
            raise self._error(f"{name}={text} is not a number.", "Set it in milliseconds.")
        return int(text) / 1000

    def _number(self, name: str, text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise self._error(
                f"sasl.jaas.config: {name} is not a number.", "Set it as a number, such as 0.8."
            ) from error

    def _error(self, what: str, action: str) -> ConfigurationError:
        return ConfigurationError(what, where=self._where, action=action)
