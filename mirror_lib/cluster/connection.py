"""One description of a cluster that both Kafka clients are made from.

confluent-kafka (librdkafka) serves administration and the small internal topics, aiokafka's low-level client the
records. Flows speak the Java clients' property names; the mapping is here and in `security`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_lib.cluster.auth import Security, read_security
from mirror_lib.config import ClientSettings
from mirror_lib.config.file import AddressError, parse_addresses
from mirror_lib.errors import ConfigurationError, Where

_DEFAULT_REQUEST_TIMEOUT_MS = 30_000
_DEFAULT_METADATA_MAX_AGE_MS = 300_000
#: The range of librdkafka's `socket.timeout.ms`.
_SHORTEST_TIMEOUT_MS, _LONGEST_TIMEOUT_MS = 10, 300_000


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one cluster as one client. Pickles, holds no open resource, and its repr shows no secret.

    It does hold secrets: what carries it (a Spark job's arguments) must not be logged.
    """

    #: The alias of the cluster in the configuration, for messages.
    cluster: str
    #: `host:port` each.
    bootstrap_servers: tuple[str, ...]
    client_id: str = "mirror"
    #: Longest wait for the answer to one request, milliseconds.
    request_timeout_ms: int = _DEFAULT_REQUEST_TIMEOUT_MS
    security: Security = field(default_factory=Security)
    #: Where the client is, for a leader that may name a replica nearby (KIP-392); "" says nothing.
    rack: str = ""
    #: How long such a replica is read from before the leader is asked again, milliseconds.
    metadata_max_age_ms: int = _DEFAULT_METADATA_MAX_AGE_MS

    @classmethod
    def from_settings(cls, settings: ClientSettings) -> Connection:
        """Read a client's Java properties; names that only tune Java's clients are ignored.

        Key and trust stores are opened here, so this must run where their files are.

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
        """Properties for any client of confluent-kafka; the caller adds what its kind of client needs.

        Raises:
            MirrorError: a token or a ticket that the login needs cannot be had.
        """
        return {
            "bootstrap.servers": ",".join(self.bootstrap_servers),
            "client.id": self.client_id,
            # What it would print while a broker is away also comes by its error callback.
            "log_level": 2,
            "socket.timeout.ms": min(max(self.request_timeout_ms, _SHORTEST_TIMEOUT_MS), _LONGEST_TIMEOUT_MS),
            **self.security.librdkafka(Where(cluster=self.cluster)),
        }

    def aiokafka(self) -> dict[str, Any]:
        """Keyword arguments for `aiokafka.client.AIOKafkaClient`; a TLS context is built anew by each call.

        Raises:
            ConfigurationError: this installation lacks what the SASL mechanism needs.
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
            f"bootstrap.servers: {error.member} is no broker address.", where=where, action="Write it as host:port."
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
            f"{name}={text} is no number of milliseconds.", where=where, action="Give it in milliseconds."
        )
    # Java takes nothing as a time; here each request needs some.
    return max(value, 1)
