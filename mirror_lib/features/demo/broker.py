"""A Kafka cluster of one or three brokers as processes on this machine, for tests, the demo and the benchmark."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import javaproperties
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mirror_lib.errors import MirrorError, Where
from mirror_lib.features.demo import jars as jar_sets
from mirror_lib.features.demo.background_process import BackgroundProcess, ProcessError, recall, running, start
from mirror_lib.features.demo.broker_config import (
    PLAINTEXT_ONLY,
    NodePorts,
    log_settings,
    needs_zookeeper,
    server_properties,
)
from mirror_lib.features.demo.class_archive import archive_path, reading_options
from mirror_lib.features.demo.ports import LOOPBACK, free_ports, is_free
from mirror_lib.features.demo.zookeeper import JVM_FLAGS as ZOOKEEPER_JVM_FLAGS
from mirror_lib.features.demo.zookeeper import ZooKeeper
from mirror_lib.printable import LINES
from mirror_lib.private_files import write_atomically
from mirror_lib.processes import tail
from mirror_lib.spark.java import find_java

#: Starts fast and saves CPU; a benchmark uses KAFKA_DEFAULT_JVM instead.
FAST_START_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
#: The name of a broker's class archive in the folder of its jars; brokers with `FAST_START_JVM` read it if it exists.
CLASS_ARCHIVE = "broker-classes"
#: As Kafka's own start script (kafka-run-class.sh, KAFKA_JVM_PERFORMANCE_OPTS).
KAFKA_DEFAULT_JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
#: Output of the storage tool for a broker, kept in the folder of the jars.
_FORMATTED = "formatted"
_STORAGE_FILE = "meta.properties"
_START_ATTEMPTS = 3
_PORT_TAKEN = ("Address already in use", "BindException")
_STOP_GRACE_SECONDS = 10.0
#: If several brokers stop at once, the last ones lose their quorum and would wait in vain.
_QUORUM_STOP_GRACE_SECONDS = 3.0
_POLL_SECONDS = 0.05


class BrokerStartError(MirrorError):
    """A broker did not come up; the message contains the end of its log."""

    reason = "broker-start"
    #: The end of a log.
    layout = LINES


class _PortTakenError(BrokerStartError):
    """Another process took one of the ports between the check and the broker's start."""


@dataclass(frozen=True, slots=True)
class _Identity:
    """Properties of a cluster that its folder keeps between starts."""

    cluster_id: str
    nodes: tuple[NodePorts, ...]


class KafkaCluster:
    """A cluster in one folder: its data, ports and running processes are found again by the path of the folder.

    Brokers have the node ids 1 to `brokers`. The processes outlive this object and this program until `stop`; as a
    context manager it starts and stops them.
    """

    def __init__(
        self,
        name: str,
        *,
        directory: Path,
        brokers: int = 1,
        jars: Path | None = None,
        version: str = jar_sets.KAFKA_VERSION,
        overrides: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] = PLAINTEXT_ONLY,
        proxied: Collection[str] = (),
        jvm_flags: Sequence[str] = FAST_START_JVM,
        heap_megabytes: int | None = None,
        racks: Sequence[str] = (),
    ) -> None:
        """Nothing starts yet.

        Args:
            name: for messages.
            directory: the cluster's folder, created when it starts.
            brokers: their number; with three, internal topics have three replicas.
            jars: folder with the broker's jars; by default they are fetched when the cluster starts.
            version: of Kafka; before 3.3 a ZooKeeper is started with the brokers.
            overrides: broker properties.
            listeners: name -> security protocol of each listener for clients; the first is also the brokers' own.
            proxied: listeners, not the first, that advertise other ports to clients: see `tools.testbed.proxy`.
            jvm_flags: besides the heap.
            heap_megabytes: of each broker.
            racks: `broker.rack` of each broker, in the order of their ids; empty sets none.
        """
        self.name = name
        self.directory = directory.absolute()
        self.brokers = brokers
        self.version = version
        self._jars = jars
        self._zookeeper = ZooKeeper(self.directory / "zookeeper")
        self._overrides = dict(overrides or {})
        self._racks = dict(zip(range(1, brokers + 1), racks, strict=False))
        self._listeners = dict(listeners)
        self._proxied = tuple(proxied)
        if not set(self._proxied) <= set(list(self._listeners)[1:]):
            raise ValueError(f"{self._proxied} are not listeners behind the first of {tuple(self._listeners)}")
        heap_size = heap_megabytes or (512 if brokers == 1 else 320)
        self._jvm = (f"-Xmx{heap_size}m", "-Djava.awt.headless=true", *jvm_flags)
        self._identity = self._load_identity() or self._new_identity()

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap servers of the first listener."""
        return self.bootstrap_servers_of(next(iter(self._listeners)))

    def bootstrap_servers_of(self, listener: str) -> str:
        """Return the bootstrap servers of the listener of that name."""
        ports = (node.advertised.get(listener, node.listeners[listener]) for node in self._identity.nodes)
        return ",".join(f"{LOOPBACK}:{port}" for port in ports)

    def ports_of(self, node_id: int) -> NodePorts:
        """Return the ports of one broker; they may change while it is stopped if one is taken, advertised ones
        never.
        """
        return self._node(node_id)

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster; with ZooKeeper, brokers generate another one."""
        return self._identity.cluster_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The node ids of all brokers, running or not."""
        return tuple(node.node_id for node in self._identity.nodes)

    @property
    def data_folders(self) -> tuple[Path, ...]:
        """The log folders of each broker, in the order of their ids."""
        return tuple(self._data(node_id) for node_id in self.node_ids)

    @property
    def running_nodes(self) -> tuple[int, ...]:
        """The node ids of the running brokers."""
        return tuple(node for node in self.node_ids if self.process(node) is not None)

    def process(self, node_id: int) -> BackgroundProcess | None:
        """Return the running process of a broker."""
        return running(self._pid_file(node_id))

    def log_tail(self, node_id: int, lines: int = 20) -> str:
        """Return the last lines of a broker's output."""
        return tail(self._log(node_id), lines)

    def start(self, timeout_seconds: float = 180.0) -> Self:
        """Start every broker that does not run and wait until the cluster responds; keeps data of an earlier start.

        Raises:
            BrokerStartError: a broker ended, or the cluster does not respond in time.
            ConfigurationError: Java or PySpark is missing.
            JarsUnavailableError: Kafka could not be fetched.
        """
        for attempt in range(1, _START_ATTEMPTS + 1):
            if not self.running_nodes and not all(map(is_free, self._ports())):
                self._identity = self._new_identity(self._identity)
            try:
                self._start_missing(timeout_seconds)
            except _PortTakenError:
                self.kill_all()
                if attempt == _START_ATTEMPTS:
                    raise
                self._identity = self._new_identity(self._identity)
            except BaseException:
                # An interrupt, too: before the `with` block is entered, nothing else ends the started processes.
                self.kill_all()
                raise
            else:
                break
        return self

    def stop(self) -> None:
        """Shut all brokers down, and kill those that do not end; nothing to do if none runs. The data stays."""
        grace = _STOP_GRACE_SECONDS if self.brokers == 1 else _QUORUM_STOP_GRACE_SECONDS
        with ThreadPoolExecutor(max_workers=self.brokers) as pool:
            list(pool.map(lambda node_id: self._stop(node_id, grace), self.node_ids))
        # A clean shutdown of brokers needs it.
        self._zookeeper.end()

    def stop_broker(self, node_id: int, grace_seconds: float = _STOP_GRACE_SECONDS) -> None:
        """Shut one broker down: it hands its partitions over first. If it does not end in time, it is killed."""
        self._stop(node_id, grace_seconds)

    def kill(self, node_id: int) -> None:
        """Kill one broker, like a crash."""
        if (process := recall(self._pid_file(node_id))) is not None:
            process.kill()
            self._pid_file(node_id).unlink(missing_ok=True)

    def kill_all(self) -> None:
        """Kill all brokers, like a power cut."""
        for node_id in self.node_ids:
            self.kill(node_id)
        self._zookeeper.end()

    def restart(self, node_id: int, timeout_seconds: float = 180.0) -> None:
        """Start one broker (again) on its old ports, and wait until it is a member of the cluster.

        Raises:
            BrokerStartError: it does not come up.
        """
        self.stop_broker(node_id)
        self._launch(self._node(node_id), self._jar_folder())
        self.wait_ready(timeout_seconds)

    def delete(self) -> None:
        """Stop the cluster and delete its folder with all data."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def wait_ready(self, timeout_seconds: float = 180.0) -> None:
        """Wait until all started brokers are members of a cluster that has a controller.

        Raises:
            BrokerStartError: a started broker has ended, or time is up.
        """
        deadline = time.monotonic() + timeout_seconds
        started = [node for node in self._identity.nodes if self._pid_file(node.node_id).exists()]
        for node in started:
            self._wait_listening(node, deadline)
        wanted = {node.node_id for node in started}
        first = next(iter(self._listeners))
        if self._listeners[first] != "PLAINTEXT":
            return
        addresses = ",".join(f"{LOOPBACK}:{node.listeners[first]}" for node in started)
        # librdkafka prints unreachable brokers, which is normal while a cluster starts.
        admin = AdminClient({"bootstrap.servers": addresses, "log_level": 0, "reconnect.backoff.max.ms": 200})
        while not wanted <= _members(admin):
            for node_id in wanted:
                self._check_alive(node_id)
            if time.monotonic() > deadline:
                raise self._not_ready(min(wanted), timeout_seconds)
            time.sleep(_POLL_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _stop(self, node_id: int, grace_seconds: float) -> None:
        if (process := recall(self._pid_file(node_id))) is not None:
            process.stop(grace_seconds)
            self._pid_file(node_id).unlink(missing_ok=True)

    def _start_missing(self, timeout_seconds: float) -> None:
        missing = [self._node(node_id) for node_id in self.node_ids if node_id not in self.running_nodes]
        if missing:
            folder = self._jar_folder()
            self._remember()
            if needs_zookeeper(self.version):
                self._start_zookeeper(folder, time.monotonic() + timeout_seconds)
            else:
                with ThreadPoolExecutor(max_workers=len(missing)) as pool:
                    list(pool.map(lambda node: self._format(node, folder), missing))
            for node in missing:
                self._launch(node, folder)
        self.wait_ready(timeout_seconds)

    def _format(self, node: NodePorts, folder: Path) -> None:
        self._write_configuration(node)
        data = self._data(node.node_id)
        if (data / _STORAGE_FILE).is_file():
            return
        template = folder / _FORMATTED
        if template.is_dir():
            # Kafka 4.4 has the first records of the metadata log in a folder of its own.
            shutil.copytree(template, data, dirs_exist_ok=True)
            self._name_storage(data / _STORAGE_FILE, node.node_id)
        else:
            self._format_by_tool(node, folder)
            _keep(data, template)

    def _name_storage(self, file: Path, node_id: int) -> None:
        """Write the ids of this cluster, broker and folder in place of those of the template (KIP-631, KIP-858)."""
        ids = {"cluster.id": self.cluster_id, "node.id": str(node_id), "directory.id": _random_uuid()}
        properties = {**javaproperties.loads(file.read_text(encoding="ascii")), **ids}
        write_atomically(file, javaproperties.dumps(properties, timestamp=False))

    def _format_by_tool(self, node: NodePorts, folder: Path) -> None:
        home = self._home(node.node_id)
        arguments = ("format", "--config", str(home / "server.properties"), "--cluster-id", self.cluster_id)
        # A tool that runs for a second does not need the JVM settings of a server.
        java = self._java(node.node_id, folder, FAST_START_JVM)
        tool = start((*java, "kafka.tools.StorageTool", *arguments), log=home / "format.log")
        finished = tool.wait(180.0)
        if not finished:
            tool.kill()
        if not finished or not (self._data(node.node_id) / _STORAGE_FILE).is_file():
            raise self._error(f"The storage of broker {node.node_id} could not be formatted", tool.log_tail())

    def _launch(self, node: NodePorts, folder: Path) -> None:
        self._write_configuration(node)
        home = self._home(node.node_id)
        self._log(node.node_id).unlink(missing_ok=True)
        start(
            (*self._java(node.node_id, folder, self._jvm), "kafka.Kafka", str(home / "server.properties")),
            log=self._log(node.node_id),
            pid_file=self._pid_file(node.node_id),
        )

    def _java(self, node_id: int, folder: Path, flags: Sequence[str]) -> tuple[str, ...]:
        return self._java_in(self._home(node_id), folder, flags)

    def _java_in(self, home: Path, folder: Path, flags: Sequence[str]) -> tuple[str, ...]:
        _, option = log_settings(self.version)
        # An archive belongs to a class path, and every folder of jars is one.
        archive = reading_options(archive_path(folder, CLASS_ARCHIVE)) if set(FAST_START_JVM) <= set(flags) else ()
        return (
            str(find_java()),
            *flags,
            *archive,
            f"{option}{home / 'log4j.properties'}",
            "-cp",
            jar_sets.classpath(folder),
        )

    def _start_zookeeper(self, folder: Path, deadline: float) -> None:
        if self._zookeeper.process is not None:
            return
        port = self._identity.nodes[0].controller
        java = self._java_in(self._zookeeper.directory, folder, (*ZOOKEEPER_JVM_FLAGS, *FAST_START_JVM))
        process = self._zookeeper.start(java, port=port, version=self.version)
        while not _listens(port):
            if not process.is_running or time.monotonic() > deadline:
                log = self._zookeeper.log_tail()
                raise self._error("ZooKeeper did not start", log, _start_error(log))
            time.sleep(_POLL_SECONDS)

    def _write_configuration(self, node: NodePorts) -> None:
        home = self._home(node.node_id)
        rack = {"broker.rack": self._racks[node.node_id]} if node.node_id in self._racks else {}
        properties = server_properties(
            node,
            self._identity.nodes,
            self._data(node.node_id),
            listeners=self._listeners,
            overrides={**rack, **self._overrides},
            zookeeper=needs_zookeeper(self.version),
        )
        write_atomically(home / "server.properties", javaproperties.dumps(properties, timestamp=False))
        write_atomically(home / "log4j.properties", log_settings(self.version)[0])

    def _wait_listening(self, node: NodePorts, deadline: float) -> None:
        for port in node.listeners.values():
            while not _listens(port):
                self._check_alive(node.node_id)
                if time.monotonic() > deadline:
                    raise self._not_ready(node.node_id, None)
                time.sleep(_POLL_SECONDS)

    def _check_alive(self, node_id: int) -> None:
        if self.process(node_id) is not None:
            return
        text = self.log_tail(node_id, 60)
        raise self._error(f"Broker {node_id} ended while starting", text, _start_error(text))

    def _not_ready(self, node_id: int, seconds: float | None) -> BrokerStartError:
        within = "in time" if seconds is None else f"within {seconds:.0f} s"
        return self._error(f"The cluster did not answer {within}", self.log_tail(node_id))

    def _error(self, what: str, log: str, kind: type[BrokerStartError] = BrokerStartError) -> BrokerStartError:
        shown = f" The end of its log:\n{log}\n" if log else " It printed nothing."
        return kind(f"{what}.{shown}", where=Where(cluster=self.name), action=f"Look into {self.directory}.")

    def _jar_folder(self) -> Path:
        if self._jars is None:
            self._jars = jar_sets.fetch(jar_sets.kafka_broker(self.version))
        return self._jars

    def _node(self, node_id: int) -> NodePorts:
        return next(node for node in self._identity.nodes if node.node_id == node_id)

    def _ports(self) -> list[int]:
        return [port for node in self._identity.nodes for port in (node.controller, *node.listeners.values())]

    def _home(self, node_id: int) -> Path:
        return self.directory / f"broker-{node_id}"

    def _data(self, node_id: int) -> Path:
        return self._home(node_id) / "data"

    def _log(self, node_id: int) -> Path:
        return self._home(node_id) / "broker.log"

    def _pid_file(self, node_id: int) -> Path:
        return self._home(node_id) / "broker.pid"

    def _new_identity(self, former: _Identity | None = None) -> _Identity:
        per_node = 1 + len(self._listeners) + len(self._proxied)
        ports = iter(free_ports(per_node * self.brokers))
        advertised = {} if former is None else {node.node_id: node.advertised for node in former.nodes}
        nodes = tuple(
            NodePorts(
                node_id,
                next(ports),
                {name: next(ports) for name in self._listeners},
                # A proxy may already listen there.
                advertised.get(node_id) or {name: next(ports) for name in self._proxied},
            )
            for node_id in range(1, self.brokers + 1)
        )
        return _Identity(_random_uuid() if former is None else former.cluster_id, nodes)

    def _remember(self) -> None:
        write_atomically(self.directory / "cluster.json", json.dumps(asdict(self._identity), indent=1) + "\n")

    def _load_identity(self) -> _Identity | None:
        try:
            stored = json.loads((self.directory / "cluster.json").read_text(encoding="utf-8"))
            identity = _Identity(stored["cluster_id"], tuple(NodePorts(**node) for node in stored["nodes"]))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise ProcessError(f"{self.directory / 'cluster.json'} cannot be read.", action="Remove it.") from error
        fits = len(identity.nodes) == self.brokers and all(
            set(n.listeners) == set(self._listeners) and set(n.advertised) == set(self._proxied) for n in identity.nodes
        )
        if not fits:
            raise ProcessError(
                f"{self.directory} holds a cluster of another shape.", action="Remove it, or use another directory."
            )
        return identity


def _start_error(log: str) -> type[BrokerStartError]:
    return _PortTakenError if any(sign in log for sign in _PORT_TAKEN) else BrokerStartError


def _keep(formatted: Path, template: Path) -> None:
    """Keep the output of the storage tool for the next brokers of these jars: the tool needs its own JVM."""
    draft = template.with_name(f".{template.name}-{uuid.uuid4().hex}")
    # Another process may have kept its own meanwhile, and the folder of the jars may be read-only.
    with suppress(OSError):
        shutil.copytree(formatted, draft)
        draft.rename(template)
    shutil.rmtree(draft, ignore_errors=True)


def _random_uuid() -> str:
    """Return an id like Kafka's Uuid.randomUuid: 22 characters of URL-safe Base64; a leading dash would look like an
    option.
    """
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0


def _members(admin: AdminClient) -> set[int]:
    try:
        metadata = admin.list_topics(timeout=2.0)
    except KafkaException:
        return set()
    return set(metadata.brokers) if metadata.controller_id >= 0 else set()
