"""Real brokers of the versions that users migrate from and to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.dev import jars
from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.dev.broker_config import acl_settings, needs_zookeeper

#: Kafka releases by their short names.
RELEASES = {"2.8": "2.8.2", "3.9": "3.9.1", "4.3": jars.KAFKA_VERSION}
SOURCES = ("2.8", "3.9", "4.3")
TARGETS = ("3.9", "4.3")

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Side:
    """One cluster of a pair: its alias in the flow, and its brokers."""

    alias: str
    version: str
    cluster: KafkaCluster

    @property
    def servers(self) -> str:
        """Bootstrap servers."""
        return self.cluster.bootstrap_servers


@contextmanager
def running(alias: str, version: str, folder: Path, tell: Tell) -> Iterator[Side]:
    """A cluster of one broker with an authorizer and no data, fetched if needed, for the duration of the context.

    Raises:
        JarsUnavailableError: Kafka of this version could not be fetched.
        BrokerStartError: it does not come up.
    """
    release = RELEASES[version]
    jars.fetch(jars.kafka_broker(release), report=lambda now: tell(f"fetching Kafka {now.jar_set}: {now.what}"))
    tell(f"starting Kafka {release} as {alias}" + (", with ZooKeeper" if needs_zookeeper(release) else ""))
    cluster = KafkaCluster(alias, directory=folder / alias, version=release, overrides=acl_settings(release))
    try:
        yield Side(alias, version, cluster.start())
    finally:
        cluster.delete()
