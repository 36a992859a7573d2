"""What librdkafka tells beside the answers: refusals and lost brokers, which come through its error callback only."""

from __future__ import annotations

from confluent_kafka import KafkaError

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol import ErrorCode, LocalCode, error_for, error_text
from mirror_lib.errors import BrokerUnreachableError, Where
from mirror_lib.printable import printable

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
    """The error callback of one client (`error_cb=errors.note`), asked when a call takes long or failed.

    librdkafka calls back from within `poll`, so poll before asking.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._refusal: KafkaError | None = None
        self._lost: KafkaError | None = None
        self._losses = 0

    def note(self, error: KafkaError) -> None:
        """The callback; it must not raise."""
        # A broker that goes away in the middle of a handshake has not refused anybody.
        if error.code() in _REFUSALS and "isconnected" not in error.str():
            self._refusal = error
            return
        self._losses += 1
        # That all brokers are down says less than why the last one is.
        if error.code() != LocalCode.ALL_BROKERS_DOWN or self._lost is None:
            self._lost = error

    def lost_brokers(self) -> bool:
        """Whether a connection was lost since the last time this was asked."""
        lost, self._losses = self._losses > 0, 0
        return lost

    def raise_refusal(self) -> None:
        """Raise what the cluster refused us for, if it did since the last time.

        Raises:
            AuthenticationError: credentials or TLS handshake refused.
        """
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise error_for(refusal, where=Where(cluster=self._connection.cluster), doing="log in to the cluster")

    def unreachable(self, doing: str) -> BrokerUnreachableError:
        """The error for a cluster that does not answer, with what librdkafka saw last."""
        seen = f": {printable(error_text(self._lost)).rstrip('.')}" if self._lost is not None else ""
        return BrokerUnreachableError(
            f"could not {doing}: no broker of {', '.join(self._connection.bootstrap_servers)} answered in time{seen}.",
            where=Where(cluster=self._connection.cluster),
            action="Check that the brokers run and that bootstrap.servers and security.protocol are right.",
        )
