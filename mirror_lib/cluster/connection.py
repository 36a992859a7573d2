"""The connection settings of a cluster, for both Kafka clients.

confluent-kafka (librdkafka) is used for administration and the small internal topics, aiokafka's low-level client for
records. Flows are configured with the Java clients' property names; the mapping is here and in `security`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mirror_lib.cluster.auth.security import Security
from mirror_lib.errors import Where
from mirror_lib.outside_limits import RESPONSE_BYTES

if TYPE_CHECKING:
    from mirror_lib.config.model import ClientSettings

DEFAULT_REQUEST_TIMEOUT_MS = 30_000
DEFAULT_METADATA_MAX_AGE_MS = 300_000
#: The range of librdkafka's `socket.timeout.ms`.
_SHORTEST_TIMEOUT_MS, _LONGEST_TIMEOUT_MS = 10, 300_000


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection settings of one client to one cluster. Picklable, without open resources; its repr shows no secret.

    It contains secrets: do not log anything that contains it (a Spark job's arguments).
    """

    #: The alias of the cluster in the configuration, for messages.
    cluster: str
    #: Each as `host:port`.
    bootstrap_servers: tuple[str, ...]
    client_id: str = "mirror"
    #: Maximum wait for a response in milliseconds.
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS
    security: Security = field(default_factory=Security)
    #: The client's rack, so that a leader may name a nearby replica (KIP-392); "" if it is not set.
    rack: str = ""
    #: Time in milliseconds after which the leader is asked again instead of such a replica.
    metadata_max_age_ms: int = DEFAULT_METADATA_MAX_AGE_MS

    @classmethod
    def from_settings(cls, settings: ClientSettings) -> Connection:
        """Parse a client's Java properties; those that only tune Java's clients are ignored.

        Key and trust stores are read here, so this must run on the machine with their files.

        Raises:
            ConfigurationError: a value is missing or wrong, or a store cannot be used.
        """
        # What only reads properties is not loaded by copy tasks, which get the connection itself.
        from mirror_lib.cluster.client_properties import connection_of

        return connection_of(settings)

    def librdkafka(self) -> dict[str, Any]:
        """Properties for any client of confluent-kafka; the caller adds those for its kind of client.

        Raises:
            MirrorError: a token or a ticket for the login is not available.
        """
        return {
            "bootstrap.servers": ",".join(self.bootstrap_servers),
            "client.id": self.client_id,
            # Its log messages while a broker is down are also reported to its error callback.
            "log_level": 2,
            "receive.message.max.bytes": RESPONSE_BYTES,
            "socket.timeout.ms": min(max(self.request_timeout_ms, _SHORTEST_TIMEOUT_MS), _LONGEST_TIMEOUT_MS),
            **self.security.librdkafka(Where(cluster=self.cluster)),
        }

    def aiokafka(self) -> dict[str, Any]:
        """Keyword arguments for `aiokafka.client.AIOKafkaClient`; each call creates a new TLS context.

        Raises:
            ConfigurationError: this installation does not support the SASL mechanism.
        """
        return {
            "bootstrap_servers": list(self.bootstrap_servers),
            "client_id": self.client_id,
            "request_timeout_ms": self.request_timeout_ms,
            **self.security.aiokafka(Where(cluster=self.cluster)),
        }
