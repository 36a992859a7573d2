"""The files that a Kafka broker reads: server.properties and a quiet log configuration. Pure.

Brokers are their own controllers (KRaft's combined mode); those before Kafka 3.3 have a ZooKeeper in addition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mirror_lib.features.demo.jars import uses_log4j2
from mirror_lib.features.demo.ports import LOOPBACK

CONTROLLER = "CONTROLLER"
#: A listener without security under its customary name; listeners are given as name -> security protocol.
PLAINTEXT_ONLY: Mapping[str, str] = {"PLAINTEXT": "PLAINTEXT"}
#: For overrides: ACLs can be stored and tested while unauthenticated clients may still do everything.
WITH_ACLS: Mapping[str, str] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@dataclass(frozen=True, slots=True)
class NodePorts:
    """The ports of one node: for the quorum, and for each client listener by name."""

    node_id: int
    #: Of the quorum; with ZooKeeper, the first node's is ZooKeeper's.
    controller: int
    listeners: dict[str, int] = field(default_factory=dict)
    #: Advertised ports of listeners behind a proxy.
    advertised: dict[str, int] = field(default_factory=dict)


def needs_zookeeper(version: str) -> bool:
    """Return True if brokers of this version of Kafka need ZooKeeper: KRaft is production-ready since 3.3."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) < (3, 3)


def acl_settings(version: str) -> Mapping[str, str]:
    """Return `WITH_ACLS` for brokers of this version."""
    if needs_zookeeper(version):
        return {**WITH_ACLS, "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    return WITH_ACLS


def zookeeper_properties(port: int, data_dir: Path) -> dict[str, str]:
    """Return the properties of a standalone ZooKeeper, reachable from this machine only."""
    return {
        "dataDir": str(data_dir),
        "clientPort": str(port),
        "clientPortAddress": LOOPBACK,
        "tickTime": "2000",
        "maxClientCnxns": "0",
        # It would open another port.
        "admin.enableServer": "false",
    }


def server_properties(
    node: NodePorts,
    quorum: Sequence[NodePorts],
    log_dir: Path,
    *,
    listeners: Mapping[str, str] = PLAINTEXT_ONLY,
    overrides: Mapping[str, str] | None = None,
    zookeeper: bool = False,
) -> dict[str, str]:
    """Return the properties of one node, reachable from this machine only: broker and controller at once.

    Args:
        node: the node itself.
        quorum: all nodes of the cluster.
        log_dir: for its data.
        listeners: name -> security protocol; brokers talk to each other through the first.
        overrides: differences from the local defaults.
        zookeeper: True if the cluster has a ZooKeeper on the first node's controller port, and no quorum.
    """
    copies = str(min(3, len(quorum)))
    in_sync = "2" if len(quorum) >= 3 else "1"
    opened = {name: node.listeners[name] for name in listeners}
    addresses = ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in opened.items())
    advertised = ",".join(f"{name}://{LOOPBACK}:{node.advertised.get(name, port)}" for name, port in opened.items())
    if zookeeper:
        membership = {
            "broker.id": str(node.node_id),
            "zookeeper.connect": f"{LOOPBACK}:{quorum[0].controller}",
            # Loaded machines are slow: an expired session takes the broker out of the cluster.
            "zookeeper.session.timeout.ms": "30000",
            "zookeeper.connection.timeout.ms": "60000",
        }
        protocols, controller = dict(listeners), ""
    else:
        membership = {
            "process.roles": "broker,controller",
            "node.id": str(node.node_id),
            # A static quorum: its ports may change between two starts, which a dynamic one (KIP-853) would not allow.
            "controller.quorum.voters": ",".join(f"{each.node_id}@{LOOPBACK}:{each.controller}" for each in quorum),
            "controller.listener.names": CONTROLLER,
            # No metadata record twice a second for the lag of controllers (KIP-835): half of the work of an idle
            # broker.
            "metadata.max.idle.interval.ms": "0",
        }
        protocols, controller = {**listeners, CONTROLLER: "PLAINTEXT"}, f",{CONTROLLER}://{LOOPBACK}:{node.controller}"
    return {
        **membership,
        "listeners": f"{addresses}{controller}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": next(iter(listeners)),
        "log.dirs": str(log_dir),
        # A replicator creates topics explicitly; auto-creation would hide a mistake.
        "auto.create.topics.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "num.partitions": "1",
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # The default of 128 MB would be a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        **(overrides or {}),
    }


def log_settings(version: str, informative: Sequence[str] = ()) -> tuple[str, str]:
    """Return log settings for a Kafka program of this version: warnings and errors, to its standard output.

    Args:
        version: of Kafka.
        informative: loggers that also log at INFO level.

    Returns:
        The file's text, and the JVM option that names the file, to be completed by its path.
    """
    if uses_log4j2(version):
        more = [f"logger.l{n}.name = {name}\nlogger.l{n}.level = INFO\n" for n, name in enumerate(informative)]
        return "".join((_LOG4J2, *more)), "-Dlog4j2.configurationFile="
    more = [f"log4j.logger.{name}=INFO\n" for name in informative]
    return "".join((_RELOAD4J, *more)), "-Dlog4j.configuration=file:"


_LOG4J2 = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1} %m%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
"""
_RELOAD4J = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1} %m%n
"""
