"""Connectors of MirrorMaker 2 and the Connect worker that ran them, from any input format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mirror_lib.features.importers.written_file import Listed


class ConnectorKind(StrEnum):
    """MM2's three connectors, by the simple names of their classes."""

    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"

    @property
    def short(self) -> str:
        """Short name for answers: source, checkpoint, heartbeat."""
        return self.value.removeprefix("Mirror").removesuffix("Connector").lower()


@dataclass(frozen=True, slots=True)
class Connector:
    """One connector.

    Attributes:
        origin: where it was described, for display.
        config: as given to Connect, with `connector.class`.
        paused: it is paused or stopped.
        version: of Kafka, as reported by Connect or Strimzi.
    """

    origin: str
    name: str
    kind: ConnectorKind
    config: Mapping[str, str] = field(repr=False)
    paused: bool = False
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """The settings of a Connect worker.

    Attributes:
        settings: of its properties file.
        connects_as_target: its clients have the connection settings of the target, which `settings` then omits.
    """

    origin: str
    settings: Mapping[str, str] = field(repr=False)
    connects_as_target: bool = False


@dataclass(frozen=True, slots=True)
class ConnectCluster:
    """The connectors of one Connect cluster; `worker` is None if its settings are unknown.

    Attributes:
        listed: settings without effect here that belong to no connector.
        notes: for the reader of the new file.
    """

    connectors: tuple[Connector, ...]
    worker: Worker | None = None
    listed: tuple[Listed, ...] = ()
    notes: tuple[str, ...] = ()


def kind_of(class_name: str) -> ConnectorKind | None:
    """Return the connector that a `connector.class` means; None for one that is not MM2's.

    Connect accepts full names, simple names, and simple names without `Connector` (`Plugins.connectorClass`).
    """
    name = class_name.strip()
    package, _, simple = name.rpartition(".")
    if package not in ("", "org.apache.kafka.connect.mirror"):
        return None
    for kind in ConnectorKind:
        if simple in (kind.value, kind.value.removesuffix("Connector")):
            return kind
    return None
