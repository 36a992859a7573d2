"""Requests to a schema registry: login, retries, and the meaning of error responses.

Error codes are those of Java's `io.confluent.kafka.schemaregistry.rest.exceptions.Errors`. Several URLs are tried in
turn, as Java's `RestService` does. Messages never contain credentials, even if a response repeats them.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_lib.errors import AuthenticationError, AuthorizationError, ConfigurationError, MirrorError
from mirror_lib.features.http_client import (
    HttpCertificateError,
    HttpError,
    HttpLimits,
    HttpRequest,
    HttpRequestInvalidError,
    HttpResponse,
    HttpResponseTooLargeError,
    send,
)
from mirror_lib.features.transforms.schemas.errors import (
    SchemaMissingError,
    SchemaRefusedError,
    SchemaRegistryError,
    SchemaRegistryUnreachableError,
)
from mirror_lib.features.transforms.schemas.model import DEFAULT_CONTEXT
from mirror_lib.outside_limits import REGISTRY_RESPONSE_BYTES

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
#: Responses that usually pass: too many requests, and a server that is not up, not ready, or without a leader.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT, _UNPROCESSABLE = 401, 403, 404, 409, 422
_SHOWN_REASON = 300
_LONGEST_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class BasicLogin:
    """A user and a password; in Confluent Cloud the key and the secret of an API key."""

    user: str
    password: str = field(repr=False)

    @property
    def header(self) -> str:
        """The value of the header `Authorization`."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def secret(self) -> str:
        """The secret to mask."""
        return self.password


@dataclass(frozen=True, slots=True)
class BearerLogin:
    """A token that was obtained elsewhere."""

    token: str = field(repr=False)

    @property
    def header(self) -> str:
        """The value of the header `Authorization`."""
        return f"Bearer {self.token}"

    @property
    def secret(self) -> str:
        """The secret to mask."""
        return self.token


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Addresses, login and timeouts of a registry. Comparable and picklable; its repr contains no secret."""

    #: Base URLs of servers of the same registry, without a login.
    urls: tuple[str, ...]
    login: BasicLogin | BearerLogin | None = None
    #: Context name with the leading dot; subjects and ids belong to this context.
    context: str = DEFAULT_CONTEXT
    #: For one response.
    timeout_seconds: float = 10.0
    #: Per request, including the first one.
    attempts: int = 5
    #: Before the second attempt; doubled each time.
    pause_seconds: float = 0.2

    @classmethod
    def of(cls, urls: str, login: BasicLogin | BearerLogin | None = None, **options: Any) -> RegistryAccess:
        """Parse Java's `schema.registry.url`: a comma-separated list, in which a URL may contain user and password.

        Raises:
            ConfigurationError: an entry is not a valid http or https URL.
        """
        bare = []
        for each in filter(None, map(str.strip, urls.split(","))):
            url, found = _without_login(each)
            bare.append(url)
            login = login or found
        if not bare:
            raise ConfigurationError("the list of schema registry URLs is empty.", action="Set at least one.")
        return cls(tuple(bare), login, **options)


class RegistryConnection:
    """Requests to one registry. Thread-safe."""

    def __init__(self, access: RegistryAccess, tls: ssl.SSLContext | None = None) -> None:
        self._access = access
        self._tls = tls
        self._limits = HttpLimits(access.timeout_seconds, REGISTRY_RESPONSE_BYTES)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request; retry after errors that usually pass. All requests used here are idempotent.

        Args:
            path: with its query, percent-encoded.
            body: sent as JSON.

        Returns:
            The response's JSON.

        Raises:
            AuthenticationError: the login is rejected, or the certificate is not trusted.
            AuthorizationError: the login may not do this.
            ConfigurationError: URL or login cannot be sent.
            SchemaMissingError: the requested object does not exist.
            SchemaRefusedError: a schema is rejected.
            SchemaRegistryUnreachableError: no response came in any attempt.
            SchemaRegistryError: any other error.
        """
        pause = self._access.pause_seconds
        for attempt in range(self._access.attempts):
            url = self._access.urls[attempt % len(self._access.urls)]
            try:
                return self._ask(url, method, path, body)
            except _Passing as passing:
                if attempt + 1 == self._access.attempts:
                    raise passing.error from None
                time.sleep(min(max(pause, passing.retry_after), _LONGEST_PAUSE_SECONDS))
            pause *= 2
        raise AssertionError("no attempts are allowed")

    def _ask(self, url: str, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        what = f"{method} {path.partition('?')[0]}"
        try:
            response = send(self._request(url, method, path, body), self._limits, self._tls)
        except HttpRequestInvalidError:
            raise ConfigurationError(
                "a schema registry's URL or login has invalid characters.",
                action="Write https://host:port, and a token without spaces or line ends.",
            ) from None
        except HttpError as error:
            raise self._connection_error(url, what, error) from None
        if not response.is_success:
            raise self._rejection(url, what, response)
        try:
            return response.json()
        except ValueError:
            raise SchemaRegistryError(
                f"the response of {url} to {what} is not JSON.",
                action="Check that the URL is that of a registry with Confluent's API.",
            ) from None

    def _request(self, url: str, method: str, path: str, body: Mapping[str, Any] | None) -> HttpRequest:
        headers = {"Accept": f"{_MEDIA_TYPE}, application/json;q=0.9"}
        data = None
        if body is not None:
            headers["Content-Type"] = _MEDIA_TYPE
            data = json.dumps(body).encode()
        if self._access.login is not None:
            headers["Authorization"] = self._access.login.header
        return HttpRequest(method, url + path, headers, data)

    def _rejection(self, url: str, what: str, response: HttpResponse) -> Exception:
        code, reason = self._error_details(response)
        summary = f"the schema registry {url} responded to {what} with HTTP {response.status}"
        if response.status == _UNAUTHORIZED:
            # Its text may repeat the request.
            return AuthenticationError(f"{summary}: login rejected.", action="Check user and password, or the token.")
        if response.status == _FORBIDDEN:
            return AuthorizationError(f"{summary}: not authorized.", action="Grant the permission in the registry.")
        summary = f"{summary}{f' ({code})' if code is not None else ''}: {reason or 'no reason given'}."
        if response.status in _PASSING:
            found = SchemaRegistryUnreachableError(
                summary, action="This is usually transient; check the registry if it persists."
            )
            return _Passing(found, _retry_after(response))
        if response.status == _NOT_FOUND and (code is None or code == _NOT_FOUND):
            # Not one of the registry's own 404xx codes: it says nothing about the schema.
            return SchemaRegistryError(
                summary, action="Check the registry's URL, and whether its version supports this request."
            )
        if response.status == _NOT_FOUND:
            return SchemaMissingError(
                summary, action="Check that this is the registry that the records were written with."
            )
        if response.status in (_CONFLICT, _UNPROCESSABLE):
            return SchemaRefusedError(
                summary, action="Check the schema, and the compatibility and mode of its subject."
            )
        return SchemaRegistryError(summary, action="Check that the URL is that of a registry with Confluent's API.")

    def _connection_error(self, url: str, what: str, error: HttpError) -> Exception:
        if isinstance(error, HttpCertificateError):
            return AuthenticationError(
                f"the schema registry {url} is not trusted: {error}.",
                action="Set the certificate authority that signed its certificate.",
            )
        if isinstance(error, HttpResponseTooLargeError):
            return SchemaRegistryError(
                f"the response of the schema registry {url} to {what} is too large: {error}.",
                action="Check that the URL is that of a registry with Confluent's API.",
            )
        return _Passing(
            SchemaRegistryUnreachableError(
                f"no response from the schema registry {url} to {what}: {error}.",
                action="Check the URL, and that it is reachable from this machine.",
            )
        )

    def _error_details(self, response: HttpResponse) -> tuple[int | None, str]:
        """The registry's error code and message."""
        try:
            found = response.json()
        except ValueError:
            return None, ""
        if not isinstance(found, dict):
            return None, ""
        code, message = found.get("error_code"), found.get("message")
        shown = self._scrub(message)[:_SHOWN_REASON].rstrip(". ") if isinstance(message, str) else ""
        return code if isinstance(code, int) else None, shown

    def _scrub(self, text: str) -> str:
        login = self._access.login
        if login is not None:
            for secret in filter(None, (login.secret, login.header.partition(" ")[2])):
                text = text.replace(secret, "***")
        return text


class _Passing(Exception):
    """An error that is retried."""

    def __init__(self, error: MirrorError, retry_after: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after = retry_after


def _retry_after(response: HttpResponse) -> float:
    """Seconds that the server asks to wait; 0 if the header is missing or not in seconds."""
    header = response.headers.get("retry-after", "")
    return float(header) if header.isascii() and header.isdigit() else 0.0


def _without_login(url: str) -> tuple[str, BasicLogin | None]:
    try:
        parts = urllib.parse.urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or parts.query or parts.fragment or "@" in parts.path:
        # Not shown: it may contain a password.
        raise ConfigurationError("a schema registry URL is neither http nor https.", action="Write https://host:port.")
    login = None
    if parts.username is not None:
        login = BasicLogin(urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or ""))
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")), login
