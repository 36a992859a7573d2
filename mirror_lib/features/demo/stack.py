"""The two clusters `A` and `B` for trials, and a warm Spark and a driver host next to them.

They run in the background until they are stopped.

Any process with the same state folder can start, see and stop them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.config.local_state import local_config, state_dir
from mirror_lib.features.demo import jars as jar_sets
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.broker_config import WITH_ACLS
from mirror_lib.features.demo.driver_host import DriverHost
from mirror_lib.features.demo.spark_connect import SparkConnectServer
from mirror_lib.features.demo.state import exclusive
from mirror_lib.private_files import write_atomically
from mirror_lib.spark.connect_server import ConnectAddress
from mirror_lib.spark.submit import LOCAL_MASTER

SOURCE, TARGET = "A", "B"
#: Name of the Spark Connect server in the result of `down`.
SPARK = "Spark Connect"
#: Name of the driver host in the result of `down`.
DRIVERS = "driver host"
_MARK = (
    "# Written by `mirror dev up`, again at every start: copy this file before you change it, or remove this line.\n"
)
#: Settings of a properties file for clusters with a single broker.
ONE_BROKER = """\
# One broker each.
replication.factor = 1
offset-syncs.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
config.storage.replication.factor = 1
status.storage.replication.factor = 1
"""
#: Called with one sentence about the present step.
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """One of the clusters at one moment."""

    name: str
    bootstrap_servers: str
    running: bool
    #: Process id of its broker.
    pid: int | None
    directory: str


def up(report: jar_sets.Report = lambda _: None, step: Step = lambda _: None) -> tuple[ClusterStatus, ClusterStatus]:
    """Start what does not run, and wait until both clusters respond; data of earlier starts stays.

    A properties file of the flow `A->B` is written unless there is one that was changed by hand.

    Args:
        report: called with the progress of fetching Kafka's jars, if necessary.
        step: called with the present step.

    Returns:
        The source and the target.

    Raises:
        BrokerStartError: a broker does not come up.
        ConfigurationError: Java or PySpark is missing.
        JarsUnavailableError: Kafka could not be fetched.
    """
    with _alone(step):
        jars = jar_sets.fetch(jar_sets.kafka_broker(), report=report)
        clusters = _clusters(jars)
        if not all(cluster.running_nodes for cluster in clusters):
            step(f"Kafka clusters {SOURCE} and {TARGET} are starting")
        with ThreadPoolExecutor(max_workers=len(clusters)) as pool:
            list(pool.map(KafkaCluster.start, clusters))
        found = _status(*clusters)
        _write_properties(*found)
    return found


def warm_up(*, master: str = LOCAL_MASTER, port: int | None = None, step: Step = lambda _: None) -> ConnectAddress:
    """Start a Spark Connect server unless it runs; return its address when it has run a task of this project.

    A driver host is started next to it.

    Raises:
        ConfigurationError: Java or PySpark is missing.
        ProcessError: one of them does not come up.
    """
    with _alone(step):
        step("Spark Connect server is starting")
        address = _spark().start(master=master, port=port)
        step("Driver host is starting")
        _drivers().start()
        return address


def warm_address() -> ConnectAddress | None:
    """Return the address of the Spark Connect server, None unless it runs."""
    return _spark().address


def driver_host_socket() -> Path | None:
    """Return the socket of the driver host, None unless it runs."""
    host = _drivers()
    return host.socket if host.process is not None else None


def down(*, delete_data: bool = False, step: Step = lambda _: None) -> list[str]:
    """Stop both clusters, and Spark; return the names of what ran. Data stays unless `delete_data` is set.

    Raises:
        ProcessError: a process cannot be ended.
    """
    with _alone(step):
        clusters = [cluster for cluster in _clusters() if cluster.directory.exists()]
        ran = [cluster.name for cluster in clusters if cluster.running_nodes]
        if ran:
            step(f"Kafka is stopping: {', '.join(ran)}")
        end = KafkaCluster.delete if delete_data else KafkaCluster.stop
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(end, clusters))
        if _spark().stop():
            ran.append(SPARK)
        if _drivers().stop():
            ran.append(DRIVERS)
    return ran


def status() -> tuple[ClusterStatus, ClusterStatus]:
    """Return the present state of source and target; starts nothing."""
    return _status(*_clusters())


def example_properties(source: str, target: str) -> str:
    """Return a MirrorMaker 2 properties file for the flow `A->B`, given the bootstrap servers."""
    return f"""{_MARK}
clusters = {SOURCE}, {TARGET}
{SOURCE}.bootstrap.servers = {source}
{TARGET}.bootstrap.servers = {target}

{SOURCE}->{TARGET}.enabled = true
{SOURCE}->{TARGET}.topics = .*

{ONE_BROKER}"""


def _alone(step: Step) -> AbstractContextManager[None]:
    return exclusive(state_dir() / "kafka.lock", lambda: step("waiting for another command that starts or stops them"))


def _spark() -> SparkConnectServer:
    return SparkConnectServer(state_dir() / "spark-connect")


def _drivers() -> DriverHost:
    return DriverHost(state_dir() / "driver-host")


def _clusters(jars: Path | None = None) -> tuple[KafkaCluster, KafkaCluster]:
    folder = state_dir() / "kafka"
    # With an authorizer, ACLs can be set and synced; it denies nothing.
    return (
        KafkaCluster(SOURCE, directory=folder / SOURCE, jars=jars, overrides=WITH_ACLS),
        KafkaCluster(TARGET, directory=folder / TARGET, jars=jars, overrides=WITH_ACLS),
    )


def _status(source: KafkaCluster, target: KafkaCluster) -> tuple[ClusterStatus, ClusterStatus]:
    return _cluster_status(source), _cluster_status(target)


def _cluster_status(cluster: KafkaCluster) -> ClusterStatus:
    processes = [cluster.process(node_id) for node_id in cluster.node_ids]
    pid = next((process.pid for process in processes if process is not None), None)
    running = all(process is not None for process in processes)
    return ClusterStatus(cluster.name, cluster.bootstrap_servers, running, pid, str(cluster.directory))


def _write_properties(source: ClusterStatus, target: ClusterStatus) -> None:
    file = local_config()
    if not file.exists() or file.read_text(encoding="utf-8").startswith(_MARK):
        write_atomically(file, example_properties(source.bootstrap_servers, target.bootstrap_servers))
