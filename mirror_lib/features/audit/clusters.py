"""Connections to the two clusters of an audit, from the command line alone or with files of Java clients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.file.properties import read_properties
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import ConfigurationError


def connection_to(side: str, servers: str, config: Path | None) -> Connection:
    """Return the connection of a side, with the security of a Java client's properties file.

    Args:
        side: `source` or `target`, for messages.
        servers: as in `bootstrap.servers`.

    Raises:
        ConfigurationError: the file cannot be read, or a value is wrong.
    """
    properties = {**_properties_of(config), "bootstrap.servers": servers}
    return Connection.from_settings(ClientSettings(cluster=side, role="audit", properties=properties))


def _properties_of(config: Path | None) -> Mapping[str, str]:
    if config is None:
        return {}
    try:
        data = config.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{config} cannot be read: {error.strerror}.", action="Name the properties file of a Kafka client."
        ) from error
    found = read_properties(data, str(config))
    return {key: entry.value.strip() for key, entry in found.effective.items()}
