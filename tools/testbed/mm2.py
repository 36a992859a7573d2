"""MirrorMaker 2 itself as a child process: for comparison, for taking over from it and for handing back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from mirror_lib.features.demo import jars as jar_sets
from mirror_lib.features.demo.background_process import BackgroundProcess, ProcessError, recall, start
from mirror_lib.features.demo.broker_config import log_settings
from mirror_lib.private_files import write_atomically
from mirror_lib.processes import tail
from mirror_lib.spark.java import find_java

_MAIN_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
#: Logged by MirrorMaker.java when all its herders run; its connectors and tasks follow some seconds later.
_STARTED = "Kafka MirrorMaker started"
_STOP_GRACE_SECONDS = 30.0
_POLL_SECONDS = 0.1


class MirrorMaker:
    """One dedicated MirrorMaker 2 (KIP-382), stored in its folder; as a context manager it stops at the end."""

    def __init__(
        self,
        directory: Path,
        *,
        jars: Path | None = None,
        version: str = jar_sets.KAFKA_VERSION,
        jvm_flags: Sequence[str] = (),
        heap_megabytes: int = 1024,
    ) -> None:
        """Nothing starts yet.

        Args:
            directory: for its properties file and log.
            jars: folder with its jars; by default they are fetched when it starts.
            version: of Kafka.
            jvm_flags: besides the heap; by default none, with the JVM's own choices.
            heap_megabytes: maximum size of its heap.
        """
        self.directory = directory.absolute()
        self.version = version
        self._jars = jars
        self._jvm = (f"-Xmx{heap_megabytes}m", *jvm_flags)

    @property
    def process(self) -> BackgroundProcess | None:
        """The running process."""
        process = recall(self._pid_file)
        return process if process is not None and process.is_running else None

    @property
    def pid(self) -> int:
        """Its process id.

        Raises:
            ProcessError: it does not run.
        """
        return self._running().pid

    @property
    def cpu_seconds(self) -> float:
        """User and system time since its start.

        Raises:
            ProcessError: it does not run.
        """
        return self._running().cpu_seconds

    @property
    def log(self) -> Path:
        """Its output: warnings, errors, and the state of its connectors."""
        return self.directory / "mirror-maker.log"

    def start(self, properties: str) -> Self:
        """Start it with the text of a properties file; returns at once.

        Call it inside of `with`: an interrupt between the start and the `with` would leave it running.

        Raises:
            ProcessError: it runs already.
            ConfigurationError: Java or PySpark is missing.
            JarsUnavailableError: MirrorMaker could not be fetched.
        """
        if self.process is not None:
            raise ProcessError(f"MirrorMaker of {self.directory} runs already.", action="Stop it first.")
        folder = self._jars or jar_sets.fetch(jar_sets.mirror_maker(self.version))
        settings, option = log_settings(self.version, ["org.apache.kafka.connect.mirror"])
        write_atomically(self.directory / "mm2.properties", properties)
        write_atomically(self.directory / "log4j.properties", settings)
        self.log.unlink(missing_ok=True)
        start(
            (
                *(str(find_java()), *self._jvm, f"{option}{self.directory / 'log4j.properties'}"),
                *("-cp", jar_sets.classpath(folder), _MAIN_CLASS, str(self.directory / "mm2.properties")),
            ),
            log=self.log,
            pid_file=self._pid_file,
        )
        return self

    def wait_started(self, timeout_seconds: float = 180.0) -> Self:
        """Wait until it logs that it has started; its first records follow some seconds later.

        Raises:
            ProcessError: it ended, or did not start in time; the message contains the end of its log.
        """
        deadline = time.monotonic() + timeout_seconds
        while _STARTED not in self.log_tail(2000):
            if self.process is None:
                raise ProcessError(f"MirrorMaker ended while starting. The end of its log:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"MirrorMaker did not start within {timeout_seconds:.0f} s. The end of its log:\n{self.log_tail()}"
                )
            time.sleep(_POLL_SECONDS)
        return self

    def stop(self) -> None:
        """Shut it down, so that its offsets are committed; nothing to do if it does not run."""
        if (process := recall(self._pid_file)) is not None:
            process.stop(_STOP_GRACE_SECONDS)
            self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill it, like a crash."""
        if (process := recall(self._pid_file)) is not None:
            process.kill()
            self._pid_file.unlink(missing_ok=True)

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of its output."""
        return tail(self.log, lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _pid_file(self) -> Path:
        return self.directory / "mirror-maker.pid"

    def _running(self) -> BackgroundProcess:
        process = self.process
        if process is None:
            raise ProcessError(f"MirrorMaker of {self.directory} does not run.", action="Start it first.")
        return process
