"""Reads a connection from the properties of a Java client."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.cluster.auth.security_properties import read_security
from mirror_lib.cluster.connection import DEFAULT_METADATA_MAX_AGE_MS, DEFAULT_REQUEST_TIMEOUT_MS, Connection
from mirror_lib.config.file.addresses import AddressError, parse_addresses
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import ConfigurationError, Where


def connection_of(settings: ClientSettings) -> Connection:
    """As `Connection.from_settings`."""
    where = Where(cluster=settings.cluster)
    properties = settings.properties
    return Connection(
        cluster=settings.cluster,
        bootstrap_servers=_bootstrap_servers(properties.get("bootstrap.servers", ""), where),
        client_id=properties.get("client.id") or f"mirror-{settings.role}",
        request_timeout_ms=_milliseconds(properties, "request.timeout.ms", DEFAULT_REQUEST_TIMEOUT_MS, where),
        security=read_security(properties, where),
        rack=properties.get("client.rack", ""),
        metadata_max_age_ms=_milliseconds(properties, "metadata.max.age.ms", DEFAULT_METADATA_MAX_AGE_MS, where),
    )


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
