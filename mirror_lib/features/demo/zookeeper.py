"""The ZooKeeper of brokers before Kafka 3.3: one server in a folder next to theirs, from the same jars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import javaproperties

from mirror_lib.features.demo.background_process import BackgroundProcess, recall, running, start
from mirror_lib.features.demo.broker_config import log_settings, zookeeper_properties
from mirror_lib.private_files import write_atomically
from mirror_lib.processes import tail

_SERVER = "org.apache.zookeeper.server.ZooKeeperServerMain"
#: Its management beans need parts of Log4j 1 that reload4j does not have.
JVM_FLAGS = ("-Xmx128m", "-Djava.awt.headless=true", "-Dzookeeper.jmx.log4j.disable=true")


class ZooKeeper:
    """One server for any number of brokers; found again by its folder, like the brokers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def process(self) -> BackgroundProcess | None:
        """The running server."""
        return running(self._pid_file)

    @property
    def log_settings_file(self) -> Path:
        """The path of the log configuration that `start` writes, which `java` has to name."""
        return self.directory / "log4j.properties"

    def start(self, java: Sequence[str], *, port: int, version: str) -> BackgroundProcess:
        """Start it on a port; it listens some time later.

        Args:
            java: the command up to the name of the class.
            port: for the brokers.
            version: of Kafka.
        """
        settings = zookeeper_properties(port, self.directory / "data")
        file = self.directory / "zookeeper.properties"
        write_atomically(file, javaproperties.dumps(settings, timestamp=False))
        write_atomically(self.log_settings_file, log_settings(version)[0])
        return start((*java, _SERVER, str(file)), log=self._log, pid_file=self._pid_file)

    def end(self) -> None:
        """Kill it: everything that it has acknowledged is on disk. Nothing to do if it does not run."""
        if (process := recall(self._pid_file)) is not None:
            process.kill()
            self._pid_file.unlink(missing_ok=True)

    def log_tail(self, lines: int = 60) -> str:
        """Return the last lines of its output."""
        return tail(self._log, lines)

    @property
    def _pid_file(self) -> Path:
        return self.directory / "zookeeper.pid"

    @property
    def _log(self) -> Path:
        return self.directory / "zookeeper.log"
