"""Tokens for `sasl.mechanism=OAUTHBEARER`: their sources, and their cache for all clients of a process.

Formats and defaults are those of Java's `ClientCredentialsJwtRetriever` (KIP-768, KIP-1139), `FileJwtRetriever` and
`OAuthBearerUnsecuredLoginCallbackHandler` (KIP-255).
"""

from __future__ import annotations

import base64
import json
import math
import re
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mirror_lib.cluster.auth.tls import Tls
from mirror_lib.errors import AuthenticationError, ConfigurationError, MirrorError, TransientError, Where
from mirror_lib.features.http_client import (
    HttpCertificateError,
    HttpError,
    HttpLimits,
    HttpRequest,
    HttpRequestInvalidError,
    HttpResponse,
    send,
)
from mirror_lib.masked_urls import masked_urls
from mirror_lib.operator_limits import read_named
from mirror_lib.outside_json import parse_json
from mirror_lib.outside_limits import TOKEN_RESPONSE_BYTES

#: A token is renewed after this part of its lifetime, before librdkafka (at 80 %) requests the next one.
_FRESH_PART = 0.75
_TOO_MANY_REQUESTS, _REQUEST_TIMEOUT = 429, 408
#: A token is renewed at least this often (seconds), however long its lifetime is.
_LONGEST_LIFE = 86_400.0
#: A bearer token by RFC 6750 (section 2.1). Other characters could end its field in the SASL message.
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
#: Error codes by RFC 6749 (sections 4.1.2.1 and 5.2) and RFC 8628. Any other text might repeat the request.
_KNOWN_CODES = frozenset(
    {
        "access_denied",
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "server_error",
        "slow_down",
        "temporarily_unavailable",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token with its lifetime."""

    value: str = field(repr=False)
    #: Epoch seconds.
    began: float
    ends: float
    principal: str

    @property
    def fresh_until(self) -> float:
        """Epoch seconds until which new connections use it."""
        return self.began + (self.ends - self.began) * _FRESH_PART


class TokenSource(Protocol):
    """A source of tokens. Comparable and picklable; its repr contains no secret."""

    def fetch(self, where: Where) -> Token:
        """Obtain a new token.

        Raises:
            AuthenticationError: the token is refused, or cannot be used.
            ConfigurationError: the token endpoint's URL is invalid.
            TransientError: the token endpoint does not respond.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The client-credentials grant of RFC 6749 (section 4.4) at a token endpoint."""

    #: A URL may contain secrets.
    endpoint: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    #: `sasl.oauthbearer.header.urlencode`: RFC 6749 requires it, many providers do not.
    urlencode_header: bool = False
    subject_claim: str = "sub"
    #: Timeout of one response in seconds.
    timeout: float = 10.0
    #: Seconds between attempts, doubled each time, and in total.
    backoff: float = 0.1
    longest_backoff: float = 10.0
    tls: Tls | None = None

    def fetch(self, where: Where) -> Token:
        """As `TokenSource.fetch`."""
        deadline, pause = time.monotonic() + self.longest_backoff, self.backoff
        while True:
            try:
                return self._ask(where)
            except TransientError:
                if time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause *= 2

    def librdkafka(self) -> dict[str, str] | None:
        """The properties with which librdkafka requests the same tokens; None if it cannot."""
        tls = self.tls or Tls()
        if self.urlencode_header or tls != Tls(trusted=tls.trusted):
            return None
        options = {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.endpoint,
            "sasl.oauthbearer.client.id": self.client_id,
            "sasl.oauthbearer.client.secret": self.client_secret,
            "sasl.oauthbearer.sub.claim.name": self.subject_claim,
        }
        if self.scope:
            options["sasl.oauthbearer.scope"] = self.scope
        if tls.trusted is not None:
            options["https.ca.pem"] = tls.trusted
        return options

    def _ask(self, where: Where) -> Token:
        try:
            tls = None if self.tls is None else self.tls.context()
            response = send(self._request(), HttpLimits(self.timeout, TOKEN_RESPONSE_BYTES), tls)
        except HttpRequestInvalidError:
            raise ConfigurationError(
                "sasl.oauthbearer.token.endpoint.url is not a valid URL.",
                where=where,
                action="Write https://host:port/path, with all other characters percent-encoded.",
            ) from None
        except HttpError as error:
            raise self._connection_error(error, where) from None
        if not response.is_success:
            raise self._rejection(response, where)
        answered = _members(response)
        value = answered.get("access_token") or answered.get("id_token")
        if not isinstance(value, str) or not value:
            raise AuthenticationError(
                f"the response of the token endpoint {self._masked_endpoint()} has no access_token.",
                where=where,
                action="Check sasl.oauthbearer.token.endpoint.url: it must be the token endpoint.",
            )
        return as_token(value, where, f"the token endpoint {self._masked_endpoint()}", self.subject_claim, answered)

    def _request(self) -> HttpRequest:
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        pair = (self.client_id, self.client_secret)
        name, secret = map(urllib.parse.quote_plus, pair) if self.urlencode_header else pair
        return HttpRequest(
            "POST",
            self.endpoint,
            {
                "Accept": "application/json",
                "Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode(),
                "Cache-Control": "no-cache",
                "Content-Type": "application/x-www-form-urlencoded",
            },
            urllib.parse.urlencode(form).encode(),
        )

    def _rejection(self, response: HttpResponse, where: Where) -> MirrorError:
        code = _members(response).get("error")
        status = f"HTTP {response.status}{f' ({code})' if isinstance(code, str) and code in _KNOWN_CODES else ''}"
        if response.status >= 500 or response.status in (_TOO_MANY_REQUESTS, _REQUEST_TIMEOUT):
            return TransientError(
                f"the token endpoint {self._masked_endpoint()} returned no token: {status}.",
                where=where,
                action="This is usually transient; check the identity provider if it persists.",
            )
        return AuthenticationError(
            f"the token endpoint {self._masked_endpoint()} rejected client {self.client_id}: {status}.",
            where=where,
            action="Check sasl.oauthbearer.token.endpoint.url, and clientId, clientSecret and scope in "
            "sasl.jaas.config.",
        )

    def _connection_error(self, error: HttpError, where: Where) -> MirrorError:
        if isinstance(error, HttpCertificateError):
            return AuthenticationError(
                f"the token endpoint {self._masked_endpoint()} is not trusted: {error}.",
                where=where,
                action="As in Java, set its certificate authority in ssl.truststore.location (and "
                "ssl.truststore.password), as options of sasl.jaas.config.",
            )
        return TransientError(
            f"the token endpoint {self._masked_endpoint()} cannot be reached: {error}.",
            where=where,
            action="Check sasl.oauthbearer.token.endpoint.url, and that it is reachable from this machine and Spark's "
            "workers.",
        )

    def _masked_endpoint(self) -> str:
        """The endpoint without possible secrets in its URL."""
        return re.split("[?#]", masked_urls(self.endpoint), maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that another program keeps filled with a valid token: `sasl.oauthbearer.token.endpoint.url=file:...`."""

    path: str
    #: Its content when the configuration was read: for machines without the file.
    content: str = field(repr=False)
    subject_claim: str = "sub"

    def fetch(self, where: Where) -> Token:
        """As `TokenSource.fetch`."""
        try:
            text = read_named(Path(self.path)).decode()
        except OSError:
            text = self.content
        return as_token(text.strip(), where, f"the file {self.path}", self.subject_claim)


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """An unsigned token, for development clusters that accept it (KIP-255)."""

    #: JSON of the claims without `iat` and `exp`.
    claims: str
    principal: str
    lifetime_seconds: float = 3600.0

    def fetch(self, where: Where) -> Token:
        """As `TokenSource.fetch`; never fails."""
        del where
        now = time.time()
        claims = {**json.loads(self.claims), "iat": now, "exp": now + self.lifetime_seconds}
        value = f"{_base64url({'alg': 'none'})}.{_base64url(claims)}."
        return Token(value, now, now + self.lifetime_seconds, self.principal)


def as_token(
    value: str, where: Where, origin: str, subject_claim: str, answered: Mapping[str, Any] | None = None
) -> Token:
    """Return a token with its expiry: from its own claim `exp`, or from the response.

    Raises:
        AuthenticationError: the token has expired, has no expiry, or is not valid for SASL.
    """
    if _TOKEN.fullmatch(value) is None:
        raise AuthenticationError(
            f"the token from {origin} contains characters that are not allowed in a bearer token (RFC 6750).",
            where=where,
            action="Kafka's brokers need a JSON Web Token; configure the identity provider to issue one.",
        )
    now = time.time()
    claims = jwt_claims(value)
    if "exp" in claims:
        ends = _seconds(claims["exp"])
    else:
        lasts = _seconds((answered or {}).get("expires_in"))
        ends = None if lasts is None else now + lasts
    if ends is None:
        raise AuthenticationError(
            f"the token from {origin} is not a JSON Web Token with a numeric exp claim.",
            where=where,
            action="Kafka's brokers need such a token; configure the identity provider to issue one.",
        )
    if ends <= now:
        raise AuthenticationError(
            f"the token from {origin} expired {now - ends:.0f} s ago.",
            where=where,
            action="Renew it, and check the clocks of both machines.",
        )
    subject = claims.get(subject_claim)
    return Token(value, now, min(ends, now + _LONGEST_LIFE), subject if isinstance(subject, str) else "mirror")


def _seconds(value: object) -> float | None:
    """A finite number; None for anything else, such as a boolean or a text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None


def jwt_claims(token: str) -> dict[str, Any]:
    """The claims of a JSON Web Token, unverified; empty if it is something else."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = parse_json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _members(response: HttpResponse) -> dict[str, Any]:
    """The members of the JSON object in the response; empty if it is something else."""
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class _Tokens:
    """The tokens of this process: connections to the same cluster share one while it is fresh."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[TokenSource, threading.Lock] = {}
        self._held: dict[TokenSource, Token] = {}
        #: The last error, and its time (monotonic seconds).
        self._failed: dict[TokenSource, tuple[float, MirrorError]] = {}

    def get(self, source: TokenSource, where: Where) -> Token:
        with self._lock:
            own = self._locks.setdefault(source, threading.Lock())
        arrived = time.monotonic()
        with own:
            token = self._held.get(source)
            if token is None or token.fresh_until <= time.time():
                token = self._fetch(source, where, arrived)
            return token

    def _fetch(self, source: TokenSource, where: Where, arrived: float) -> Token:
        then, known = self._failed.get(source, (0.0, None))
        # A caller that waited during another one's failed attempt gets that error instead of a further attempt.
        if known is not None and then >= arrived:
            raise type(known)(known.what, where=where, action=known.action)
        try:
            token = self._held[source] = source.fetch(where)
        except MirrorError as error:
            self._failed[source] = time.monotonic(), error
            raise
        self._failed.pop(source, None)
        return token

    def forget(self, source: TokenSource, value: str | None) -> None:
        with self._lock:
            held = self._held.get(source)
            if held is not None and value in (None, held.value):
                self._held.pop(source, None)


_TOKENS = _Tokens()


def token_of(source: TokenSource, where: Where) -> Token:
    """A token that is fresh enough for a new connection, requested only if this process has none.

    Raises:
        AuthenticationError: the token is refused, or cannot be used.
        ConfigurationError: the token endpoint's URL is invalid.
        TransientError: the token endpoint does not respond.
    """
    return _TOKENS.get(source, where)


def forget_token(source: TokenSource, value: str | None = None) -> None:
    """Drop a token that a broker has rejected: the next connection gets a new one.

    Args:
        source: the token's source.
        value: the rejected token; a newer one is kept. None drops any token.
    """
    _TOKENS.forget(source, value)


def _base64url(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
