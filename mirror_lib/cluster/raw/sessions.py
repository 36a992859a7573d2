"""Renews login sessions with a limited lifetime (`connections.max.reauth.ms`, KIP-368) on their connection.

A broker closes a connection whose session has expired at the next request on it. Like Java's
`SaslClientAuthenticator`, a client logs in again before that, when it next has a request to send.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import aiokafka.errors as aiokafka_errors

from mirror_lib.cluster.protocol.fields import FieldReader, encode_string
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.errors import AuthenticationError, Where

_SASL_HANDSHAKE, _SASL_HANDSHAKE_VERSION = 17, 1
_SASL_AUTHENTICATE, _SASL_AUTHENTICATE_VERSION = 36, 1
#: Java logs in again after 85 % to 95 % of a session.
_PART = 0.85
#: Seconds; brokers reject an earlier renewal (`SaslServerAuthenticator`).
_SOONEST = 1.0
_LENGTH = struct.Struct(">i")

#: Sends a request (API key, version, body) and returns its response.
Ask = Callable[[int, int, Sequence[bytes]], Awaitable[memoryview]]


class _Authenticated(NamedTuple):
    error_code: int
    message: str
    payload: bytes
    lifetime_ms: int


class Session:
    """The lifetime of a connection's login, and its renewal."""

    def __init__(self, mechanism: str, new_exchange: Callable[[], Any], lifetime_ms: int, cluster: str) -> None:
        """A session that starts now.

        Args:
            mechanism: of SASL.
            new_exchange: creates the client's side of an exchange, as aiokafka drives it.
            lifetime_ms: from the broker; 0 for an unlimited session.
            cluster: its alias, for messages.
        """
        self._mechanism = mechanism
        self._new_exchange = new_exchange
        self._cluster = cluster
        self._began, self._due = 0.0, 0.0
        self._begin(lifetime_ms)

    @property
    def is_due(self) -> bool:
        """True if most of the session's lifetime is over, and the broker allows its renewal."""
        return time.monotonic() >= max(self._due, self._began + _SOONEST)

    @property
    def is_nearly_over(self) -> bool:
        """True if most of the session's lifetime is over."""
        return time.monotonic() >= self._due

    async def renew(self, ask: Ask) -> None:
        """Log in again; no other request may be sent on the connection meanwhile.

        Raises:
            AuthenticationError: the broker rejects the login.
            AuthenticationFailedError: a prerequisite of the login is not available; its cause is the project's error.
            ConnectionError, TimeoutError: the connection was closed.
        """
        code = _handshake(await ask(_SASL_HANDSHAKE, _SASL_HANDSHAKE_VERSION, (encode_string(self._mechanism),)))
        if code:
            raise self._rejection(code, "")
        exchange = self._new_exchange()
        response: _Authenticated | None = None
        while (step := await exchange.step(None if response is None else response.payload)) is not None:
            message = bytes(step[0])
            body = (_LENGTH.pack(len(message)), message)
            response = _parse_authenticate(await ask(_SASL_AUTHENTICATE, _SASL_AUTHENTICATE_VERSION, body))
            if response.error_code:
                raise self._rejection(response.error_code, response.message)
        self._begin(0 if response is None else response.lifetime_ms)

    def _begin(self, lifetime_ms: int) -> None:
        self._began = time.monotonic()
        self._due = self._began + lifetime_ms / 1000 * _PART if lifetime_ms > 0 else math.inf

    def _rejection(self, code: int, message: str) -> AuthenticationError:
        return AuthenticationError(
            f"the cluster rejected the renewal of the login: {message or aiokafka_errors.for_code(code).__name__}.",
            where=Where(cluster=self._cluster),
            action="Check sasl.mechanism, sasl.jaas.config and the user on the cluster.",
        )


@response_of("SaslHandshake")
def _handshake(response: memoryview) -> int:
    return FieldReader(response, flexible=False).int16()


@response_of("SaslAuthenticate")
def _parse_authenticate(response: memoryview) -> _Authenticated:
    fields = FieldReader(response, flexible=False)
    code, message = fields.int16(), fields.string()
    return _Authenticated(code, message, fields.raw(), fields.int64())
