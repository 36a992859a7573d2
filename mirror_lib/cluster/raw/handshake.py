"""Opens a broker connection with aiokafka: TLS, versions and SASL."""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import aiokafka.errors as aiokafka_errors
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.admin import SaslAuthenticateRequest
from aiokafka.protocol.types import Array, Int32, Schema

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.response_limits import ALWAYS_ALLOWED, largest_response, size_problem
from mirror_lib.cluster.raw.sessions import Session
from mirror_lib.errors import AuthenticationError, MirrorError, Where
from mirror_lib.outside_limits import METADATA_ELEMENTS, METADATA_OBJECTS

_SIZE = struct.Struct(">i")
_SASL_AUTHENTICATE = SaslAuthenticateRequest.API_KEY
#: Exceptions of aiokafka for a broker that is unreachable or stops responding.
SILENCE = (TimeoutError, OSError, aiokafka_errors.KafkaError)

_REFUSALS = (
    aiokafka_errors.AuthenticationFailedError,
    aiokafka_errors.SaslAuthenticationFailed,
    aiokafka_errors.UnsupportedSaslMechanismError,
    aiokafka_errors.IllegalSaslStateError,
)


class Handshake(AIOKafkaConnection):  # type: ignore[misc]
    """A connection that aiokafka opens. It may be used without aiokafka afterwards."""

    #: From the broker's last response of the login: 0 for an unlimited session.
    _session_lifetime_ms = 0
    #: None until the login is complete, and without SASL.
    session: Session | None = None
    #: The alias, for messages.
    cluster = ""

    @property
    def is_nearly_over(self) -> bool:
        """True if the session of its login ends soon."""
        return self.session is not None and self.session.is_nearly_over

    @property
    def is_waiting(self) -> bool:
        """True while a response is pending."""
        return bool(self._requests)

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The request versions that the broker supports, by API key."""
        found: dict[int, tuple[int, int]] = self._versions
        return found

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """As in aiokafka, also on a transport of uvloop."""
        with self._convert_write_errors():
            sent = super().send(request, expect_response)
        return self._authenticate(sent) if isinstance(request, SaslAuthenticateRequest) else sent

    async def _authenticate(self, sent: Awaitable[Any]) -> Any:
        response = await sent
        # Version 0, of brokers before 2.2, lacks this field.
        self._session_lifetime_ms = getattr(response, "session_lifetime_ms", 0)
        return response

    async def _do_sasl_handshake(self) -> None:
        # Patches the logins. Connections without a login do not load it.
        from mirror_lib.cluster.auth import sasl_exchange as _  # noqa: F401

        await super()._do_sasl_handshake()
        self.session = Session(self._sasl_mechanism, self._new_exchange, self._session_lifetime_ms, self.cluster)

    def _new_exchange(self) -> Any:
        if self._sasl_mechanism == "GSSAPI":
            return self.authenticator_gssapi()
        if self._sasl_mechanism == "OAUTHBEARER":
            return self.authenticator_oauth()
        if self._sasl_mechanism == "PLAIN":
            return self.authenticator_plain()
        return self.authenticator_scram()

    def _send_sasl_token(self, payload: Any, expect_response: bool = True) -> Any:
        with self._convert_write_errors():
            return super()._send_sasl_token(payload, expect_response)

    @contextmanager
    def _convert_write_errors(self) -> Iterator[None]:
        """Convert uvloop's RuntimeError for a closed transport to aiokafka's error."""
        try:
            yield
        except RuntimeError as ended:
            if self._writer is not None and not self._writer.transport.is_closing():
                raise
            raise aiokafka_errors.KafkaConnectionError(f"{self.host}:{self.port} is not connected: {ended}") from ended

    def detach(self) -> asyncio.Transport:
        """Release the transport: aiokafka neither reads from it any more nor closes it."""
        self._read_task.cancel()
        self._reader = None
        transport: asyncio.Transport = self._writer.transport
        return transport


async def _read_within_limits(self_ref: Callable[[], Any]) -> None:
    """As in aiokafka, within the limit of each response. No reference is kept while it waits."""
    made = self_ref()
    reader = None if made is None else made._reader  # noqa: SLF001 - as aiokafka's own method reads it
    del made
    while reader is not None:
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
        if (waiting := self_ref()) is None:
            return
        _check_size(waiting, size)
        del waiting
        frame = await reader.readexactly(size)
        if (waiting := self_ref()) is None:
            return
        _ELEMENTS.left, _ELEMENTS.objects = METADATA_ELEMENTS, METADATA_OBJECTS
        waiting._handle_frame(frame)  # noqa: SLF001
        del waiting


class _Elements(threading.local):
    """How many elements the arrays of the response may have that this thread decodes now, without a pause."""

    left = METADATA_ELEMENTS
    #: Of the elements those with fields.
    objects = METADATA_OBJECTS


_ELEMENTS = _Elements()


def _decode_array(array: Any, data: Any) -> Any:
    """As in aiokafka, within the limit of elements of the response.

    Raises:
        ValueError: there are more.
    """
    begin = data.tell()
    length = Int32.decode(data)
    _ELEMENTS.left -= 1 + max(length, 0)
    if isinstance(array.array_of, Schema):
        _ELEMENTS.objects -= max(length, 0)
    if min(_ELEMENTS.left, _ELEMENTS.objects) < 0:
        raise ValueError("the arrays of the response have more elements than are allowed (docs/security.md)")
    data.seek(begin)
    return _AIOKAFKA_ARRAY(array, data)


def _check_size(connection: Any, size: int) -> None:
    """Raise if an announced response is too large for the oldest request of a connection.

    Raises:
        ConnectionResetError: it is.
    """
    requests = connection._requests  # noqa: SLF001
    if 0 <= size <= ALWAYS_ALLOWED and requests:
        return
    problem: str | None = f"the broker announced a response of {size} bytes, and no request waits for it"
    if requests:
        _, request, response = requests[0]
        # A token of Kerberos before Kafka 1.0 is no request.
        key, sent = (_SASL_AUTHENTICATE, 0) if request is None else (request.API_KEY, len(request.encode()))
        problem = size_problem(size, key, largest_response(key, sent))
        if problem is not None and not response.done():
            response.set_exception(aiokafka_errors.KafkaConnectionError(problem))
    if problem is not None:
        raise ConnectionResetError(problem)


_AIOKAFKA_ARRAY = Array.decode
Array.decode = _decode_array
#: Also of the connections that aiokafka's client opens itself.
AIOKafkaConnection._read = staticmethod(_read_within_limits)  # noqa: SLF001


async def shake_hands(
    connection: Connection,
    host: str,
    port: int,
    *,
    on_close: Callable[..., Any] | None = None,
    max_idle_ms: int | None = None,
) -> Handshake:
    """Connect to a broker of a cluster.

    Args:
        on_close: called by aiokafka when the connection ends.
        max_idle_ms: idle time after which aiokafka closes it.

    Raises:
        AuthenticationError: the broker rejects the login, or its certificate is not trusted.
        MirrorError: a prerequisite of the login (a token, a ticket) is not available.
        TimeoutError, OSError, aiokafka.errors.KafkaError: the broker does not respond (`SILENCE`).
    """
    options = connection.aiokafka()
    del options["bootstrap_servers"]
    where = Where(cluster=connection.cluster)
    try:
        handshake = Handshake(host, port, on_close=on_close, max_idle_ms=max_idle_ms, **options)
        handshake.cluster = connection.cluster
        await handshake.connect()
    except _REFUSALS as refusal:
        if isinstance(refusal.__cause__, MirrorError):
            # The project's own: a token or a ticket is not available, or the broker asks for too much or too little.
            error = refusal.__cause__
            error.where = replace(error.where, cluster=connection.cluster)
            raise error from None
        raise AuthenticationError(
            f"the cluster rejected the credentials: {refusal}.",
            where=where,
            action="Check sasl.mechanism, sasl.jaas.config and the user on the cluster.",
        ) from refusal
    except ssl.SSLCertVerificationError as distrust:
        raise AuthenticationError(
            f"the certificate of {host}:{port} is not trusted: {distrust.verify_message.rstrip('.')}.",
            where=where,
            action="Check ssl.truststore.* and ssl.endpoint.identification.algorithm.",
        ) from distrust
    except ssl.SSLError as refusal:
        if "_ALERT_" not in (refusal.reason or ""):
            # The connection was closed, or it is not TLS at all.
            raise
        raise AuthenticationError(
            f"{host}:{port} closed the TLS handshake: {refusal.reason}.",
            where=where,
            action="Check ssl.keystore.*, ssl.enabled.protocols and ssl.cipher.suites.",
        ) from refusal
    return handshake


_LOGGER = "aiokafka.conn"
_LOGIN = "SaslAuthenticate"


class _NoLogins(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        return not any(type(each).__name__.startswith(_LOGIN) for each in given)


class _NoMissingTopics(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        # Before a flow's first run its internal topics are missing; the caller reports topics that should be there.
        return record.msg != "Topic %s not found in cluster metadata"


def hide_logins() -> None:
    """Drop log lines with the messages of a login, even with level `DEBUG`, and those about missing topics."""
    for name, kind in ((_LOGGER, _NoLogins), ("aiokafka.cluster", _NoMissingTopics)):
        logger = logging.getLogger(name)
        if not any(isinstance(each, kind) for each in logger.filters):
            logger.addFilter(kind())
