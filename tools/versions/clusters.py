"""Brokers of the versions that users migrate from and to, and one that is not Kafka's own code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo import jars
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.broker_config import acl_settings, needs_zookeeper
from tools.versions import franz_go

#: The version that all other tests use.
OWN = "4.3"
#: Kafka releases by their short names.
RELEASES = {
    "2.8": "2.8.2",
    "3.6": "3.6.2",
    "3.9": "3.9.1",
    "4.1": "4.1.1",
    OWN: jars.KAFKA_VERSION,
    "4.4": "4.4.0",
}
SOURCES = tuple(RELEASES)
TARGETS = ("3.9", "4.3", "4.4")
#: The fake cluster of franz-go: Kafka's protocol by other authors.
KFAKE = "kfake"

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Side:
    """One cluster of a pair: its alias in the flow, and its bootstrap servers."""

    alias: str
    version: str
    servers: str


@contextmanager
def running(alias: str, version: str, folder: Path, log: Log) -> Iterator[Side]:
    """A cluster of one broker without data, fetched or built if needed, for the duration of the context.

    Kafka's own brokers have an authorizer.

    Raises:
        JarsUnavailableError: Kafka of this version could not be fetched.
        BrokerStartError: it does not come up.
        KfakeError: kfake could not be built or started.
    """
    if version == KFAKE:
        log(f"building and starting kfake as {alias}")
        with franz_go.running() as servers:
            yield Side(alias, version, servers)
        return
    release = RELEASES[version]
    jars.fetch(jars.kafka_broker(release), report=lambda now: log(f"fetching Kafka {now.jar_set}: {now.what}"))
    log(f"starting Kafka {release} as {alias}" + (", with ZooKeeper" if needs_zookeeper(release) else ""))
    cluster = KafkaCluster(alias, directory=folder / alias, version=release, overrides=acl_settings(release))
    try:
        yield Side(alias, version, cluster.start().bootstrap_servers)
    finally:
        cluster.delete()
