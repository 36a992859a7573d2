"""The two clusters of an audit: from the command line, with files of Java clients, or from a flow of MM2's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.file.properties import read_properties
from mirror_lib.config.loader import load_flow
from mirror_lib.config.model import ClientSettings, FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.audit.differences import AuditedFlow
from mirror_lib.limited_files import read_limited


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


def clusters_of_flow(config: Path, flow: str) -> tuple[Connection, Connection, AuditedFlow]:
    """Return the connections of a flow, as its copy uses them, and its rules: selection and names of topics, and more.

    Raises:
        ConfigurationError: the file or the flow has an error.
    """
    _, settings = load_flow(config, flow)
    return clusters_of(settings)


def clusters_of(settings: FlowConfig, topics: Sequence[str] = ()) -> tuple[Connection, Connection, AuditedFlow]:
    """As `clusters_of_flow`, of a flow that is loaded already.

    Args:
        topics: Java regexes that limit the selection; empty selects all topics of the flow.
    """
    source, target = settings.clients.data_consumer, settings.clients.data_producer
    rules = AuditedFlow(settings, flow_topology(settings, topics))
    return Connection.from_settings(source), Connection.from_settings(target), rules


def _properties_of(config: Path | None) -> Mapping[str, str]:
    if config is None:
        return {}
    try:
        data = read_limited(config)
    except OSError as error:
        raise ConfigurationError(
            f"{config} cannot be read: {error.strerror}.", action="Name the properties file of a Kafka client."
        ) from error
    found = read_properties(data, str(config))
    return {key: entry.value.strip() for key, entry in found.effective.items()}
