"""Rejections and lost brokers, which librdkafka reports only to its error callback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode, LocalCode
from mirror_lib.cluster.protocol.kafka_errors import error_for, error_text
from mirror_lib.cluster.raw.login_first import log_in_first
from mirror_lib.errors import BrokerUnreachableError, ConfigurationError, Where
from mirror_lib.printable import printable

_Client = TypeVar("_Client")
_REFUSALS = frozenset(
    {
        LocalCode.AUTHENTICATION,
        LocalCode.SSL,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
    }
)


class ClientErrors:
    """The error callback of one client (`error_cb=errors.note`), checked when a call takes long or has failed.

    librdkafka calls it from within `poll`, so poll before checking.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._refusal: KafkaError | None = None
        self._lost: KafkaError | None = None
        self._losses = 0

    def note(self, error: KafkaError) -> None:
        """The callback; it must not raise."""
        # A broker that disconnects during a handshake has not rejected the client.
        if error.code() in _REFUSALS and "isconnected" not in error.str():
            self._refusal = error
            return
        self._losses += 1
        # "All brokers down" says less than why the last one is down.
        if error.code() != LocalCode.ALL_BROKERS_DOWN or self._lost is None:
            self._lost = error

    def lost_brokers(self) -> bool:
        """True if a connection was lost since the last call."""
        lost, self._losses = self._losses > 0, 0
        return lost

    def raise_refusal(self) -> None:
        """Raise the cluster's rejection of the client, if there was one since the last call.

        Raises:
            AuthenticationError: credentials or TLS handshake rejected.
        """
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise error_for(refusal, where=Where(cluster=self._connection.cluster), doing="log in to the cluster")

    def new_client(
        self, kind: Callable[[dict[str, Any]], _Client], settings: Mapping[str, Any], what: str, where: Where
    ) -> _Client:
        """Create a client with this callback; it connects at its first use.

        Args:
            settings: in addition to those of the connection.
            what: of the error message.

        Raises:
            ConfigurationError: librdkafka rejects the connection's properties.
            AuthenticationError: a broker rejects the login, or it could misuse it.
            BrokerUnreachableError: no broker responds to the login before it.
        """
        log_in_first(self._connection)
        try:
            return kind({**self._connection.librdkafka(), "error_cb": self.note, **settings})
        except KafkaException as error:
            raise ConfigurationError(
                f"{what} cannot be created: {error_text(error.args[0])}.",
                where=where,
                action="Check the ssl.* and sasl.* properties of the cluster.",
            ) from error

    def unreachable(self, doing: str) -> BrokerUnreachableError:
        """The error for a cluster that does not respond, with librdkafka's last error."""
        where, servers = Where(cluster=self._connection.cluster), ", ".join(self._connection.bootstrap_servers)
        if self._lost is not None and self._lost.code() == LocalCode.ALL_BROKERS_DOWN:
            # Brokers that refuse a connection, do not accept it in time or have no address are reported on their own.
            closes = "closes" if len(self._connection.bootstrap_servers) == 1 else "close"
            return BrokerUnreachableError(
                f"could not {doing}: {servers} {closes} each connection without a response.",
                where=where,
                action="Check security.protocol: a listener with TLS needs security.protocol=SSL or SASL_SSL. Check "
                "also that bootstrap.servers names Kafka brokers.",
            )
        seen = f": {printable(error_text(self._lost)).rstrip('.')}" if self._lost is not None else ""
        return BrokerUnreachableError(
            f"could not {doing}: no response from {servers}{seen}.",
            where=where,
            action="Check that the brokers run, and bootstrap.servers and security.protocol.",
        )
