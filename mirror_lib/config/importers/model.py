"""Connectors of MirrorMaker 2 and the Connect worker that ran them, whoever described them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mirror_lib.config.importers.written_file import Listed


class ConnectorKind(StrEnum):
    """MM2's three connectors, by the simple names of their classes."""

    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"

    @property
    def short(self) -> str:
        """A word for answers: source, checkpoint, heartbeat."""
        return self.value.removeprefix("Mirror").removesuffix("Connector").lower()


@dataclass(frozen=True, slots=True)
class Connector:
    """One connector.

    Attributes:
        origin: where it was described, for people.
        config: what Connect was given, with `connector.class`.
        paused: it is paused or stopped.
        version: of Kafka, as Connect or Strimzi say it.
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
        connects_as_target: its clients have the connection settings of the target, which `settings` then leaves out.
    """

    origin: str
    settings: Mapping[str, str] = field(repr=False)
    connects_as_target: bool = False


@dataclass(frozen=True, slots=True)
class ConnectCluster:
    """Connectors that one Connect cluster runs; `worker` is None where nobody has said what it has.

    Attributes:
        listed: settings without effect here that belong to no connector.
        notes: what a reader of the new file should know.
    """

    connectors: tuple[Connector, ...]
    worker: Worker | None = None
    listed: tuple[Listed, ...] = ()
    notes: tuple[str, ...] = ()


def kind_of(class_name: str) -> ConnectorKind | None:
    """The connector that a `connector.class` means; None for one that is not MM2's.

    Connect takes full names, simple names, and simple names without `Connector` (`Plugins.connectorClass`).
    """
    name = class_name.strip()
    package, _, simple = name.rpartition(".")
    if package not in ("", "org.apache.kafka.connect.mirror"):
        return None
    for kind in ConnectorKind:
        if simple in (kind.value, kind.value.removesuffix("Connector")):
            return kind
    return None
