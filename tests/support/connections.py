"""Connections by the properties of a Java client."""

from __future__ import annotations

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import ClientSettings


def connection_of(servers: str = "a:1", *, cluster: str = "A", role: str = "test", **properties: str) -> Connection:
    """A connection as a client's properties name it; `_` stands for `.`."""
    named = {name.replace("_", "."): value for name, value in properties.items()}
    settings = ClientSettings(cluster=cluster, role=role, properties={"bootstrap.servers": servers, **named})
    return Connection.from_settings(settings)
