"""The connection settings of a cluster, for both Kafka clients.

confluent-kafka (librdkafka) is used for administration and the small internal topics, aiokafka's low-level client for
records. Flows are configured with the Java clients' property names; the mapping is here and in `security`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_lib.cluster.auth import Security, read_security
from mirror_lib.config import ClientSettings
from mirror_lib.config.file import AddressError, parse_addresses
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.outside_limits import RESPONSE_BYTES

_DEFAULT_REQUEST_TIMEOUT_MS = 30_000
_DEFAULT_METADATA_MAX_AGE_MS = 300_000
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
    request_timeout_ms: int = _DEFAULT_REQUEST_TIMEOUT_MS
    security: Security = field(default_factory=Security)
    #: The client's rack, so that a leader may name a nearby replica (KIP-392); "" if it is not set.
    rack: str = ""
    #: Time in milliseconds after which the leader is asked again instead of such a replica.
    metadata_max_age_ms: int = _DEFAULT_METADATA_MAX_AGE_MS

    @classmethod
    def from_settings(cls, settings: ClientSettings) -> Connection:
        """Parse a client's Java properties; those that only tune Java's clients are ignored.

        Key and trust stores are read here, so this must run on the machine with their files.

        Raises:
            ConfigurationError: a value is missing or wrong, or a store cannot be used.
        """
        where = Where(cluster=settings.cluster)
        properties = settings.properties
        return cls(
            cluster=settings.cluster,
            bootstrap_servers=_bootstrap_servers(properties.get("bootstrap.servers", ""), where),
            client_id=properties.get("client.id") or f"mirror-{settings.role}",
            request_timeout_ms=_milliseconds(properties, "request.timeout.ms", _DEFAULT_REQUEST_TIMEOUT_MS, where),
            security=read_security(properties, where),
            rack=properties.get("client.rack", ""),
            metadata_max_age_ms=_milliseconds(properties, "metadata.max.age.ms", _DEFAULT_METADATA_MAX_AGE_MS, where),
        )

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


def _bootstrap_servers(text: str, where: Where) -> tuple[str, ...]:
    try:
        return parse_addresses(text)
    except AddressError as error:
        if error.member is None:
            raise ConfigurationError(
                "bootstrap.servers is not set.",
                where=where,
                action="List the brokers as host:port, separated by commas.",
            ) from error
        raise ConfigurationError(
            f"bootstrap.servers: {error.member} is not a broker address.", where=where, action="Write it as host:port."
        ) from error


def _milliseconds(properties: Mapping[str, str], name: str, default: int, where: Where) -> int:
    text = properties.get(name)
    if text is None:
        return default
    try:
        value = int(text.strip())
    except ValueError:
        value = -1
    if value < 0:
        raise ConfigurationError(
            f"{name}={text} is not a number of milliseconds.", where=where, action="Set it in milliseconds."
        )
    # Java allows 0; here each request needs some time.
    return max(value, 1)
