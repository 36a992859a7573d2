"""The copiers, and the properties files of those that read one: MM2 with defaults, MM2 tuned, and this project's flow.

These three read the same keys. Each copy has its own source alias, so that target topics and internal topics of two
copies never collide: `tuned1.orders`, `mm2-offsets.tuned1.internal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

TARGET_ALIAS = "target"


class Copier(StrEnum):
    """The copiers."""

    MM2_DEFAULT = "mm2-default"
    MM2_TUNED = "mm2-tuned"
    #: See `tools.bench.copiers.client_loop`.
    CLIENT_LOOP = "client-loop"
    MIRROR = "mirror"

    @property
    def label(self) -> str:
        """For table heads."""
        return {
            Copier.MM2_DEFAULT: "MM2 default",
            Copier.MM2_TUNED: "MM2 tuned",
            Copier.CLIENT_LOOP: "client loop",
            Copier.MIRROR: "mirror",
        }[self]


@dataclass(frozen=True, slots=True)
class CopySetup:
    """One copy: copier, clusters and topic."""

    copier: Copier
    round: int
    topic: str
    source_bootstrap: str
    target_bootstrap: str
    tasks: int
    #: Settings of both clusters' clients in addition to the addresses, under the names of Java's clients.
    client: Mapping[str, str] = field(default_factory=dict)
    #: Further properties of this project's flow.
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def source_alias(self) -> str:
        """Different for each copier and round; contains no separator of any policy."""
        return f"{self.copier.replace('-', '')}{self.round}"

    @property
    def flow(self) -> str:
        """As written in the properties file."""
        return f"{self.source_alias}->{TARGET_ALIAS}"

    @property
    def target_topic(self) -> str:
        """By DefaultReplicationPolicy."""
        return f"{self.source_alias}.{self.topic}"


#: Usual settings of an MM2 operator for throughput. The Connect worker creates the data producer of the target cluster,
#: so its settings are `<target>.producer.*`; `max.in.flight.requests.per.connection` stays 1, as Connect needs for
#: order.
TUNED_PRODUCER: Mapping[str, str] = {
    "linger.ms": "50",
    "batch.size": str(512 * 1024),
    "compression.type": "lz4",
    "buffer.memory": str(128 * 1024 * 1024),
    "max.request.size": str(8 * 1024 * 1024),
}
TUNED_CONSUMER: Mapping[str, str] = {
    "max.poll.records": "10000",
    "fetch.max.bytes": str(64 * 1024 * 1024),
    "max.partition.fetch.bytes": str(4 * 1024 * 1024),
}
TUNED_FLOW: Mapping[str, str] = {"offset.lag.max": "100000"}


def properties(setup: CopySetup) -> dict[str, str]:
    """Return the whole file for a copy, as keys and values; a client loop reads none."""
    source, target, flow = setup.source_alias, TARGET_ALIAS, setup.flow
    settings = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": setup.source_bootstrap,
        f"{target}.bootstrap.servers": setup.target_bootstrap,
        f"{flow}.enabled": "true",
        f"{flow}.topics": setup.topic,
        "tasks.max": str(setup.tasks),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        # Not a part of the copy, and without heartbeats MM2 runs no worker for the opposite direction.
        "emit.heartbeats.enabled": "false",
        # Otherwise each start of a Connect worker scans all its jars for plugins, for seconds, before it copies.
        "plugin.discovery": "service_load",
        "emit.checkpoints.enabled": "false",
        "sync.topic.acls.enabled": "false",
    }
    for alias in (source, target):
        settings |= {f"{alias}.{name}": value for name, value in setup.client.items()}
    if setup.copier is Copier.MM2_TUNED:
        settings |= {f"{target}.producer.{name}": value for name, value in TUNED_PRODUCER.items()}
        settings |= {f"{source}.consumer.{name}": value for name, value in TUNED_CONSUMER.items()}
        settings |= {f"{flow}.{name}": value for name, value in TUNED_FLOW.items()}
    if setup.copier is Copier.MIRROR:
        settings |= setup.own
    return settings


def write_config(setup: CopySetup, path: Path) -> None:
    """Write the file of a copy by this project, with a ledger next to it: that of another bench belongs to other
    clusters.
    """
    ledger = {"mirror.ledger.url": f"sqlite:///{path.resolve().with_suffix('.sqlite3')}"}
    path.write_text(
        render({**properties(setup), **(ledger if setup.copier is Copier.MIRROR else {})}), encoding="utf-8"
    )


def render(settings: Mapping[str, str]) -> str:
    """Return properties as a file's text. The keys and values used here need no escapes."""
    return "".join(f"{name} = {value}\n" for name, value in settings.items())
