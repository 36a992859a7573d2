"""The machine of the measurement, recorded with the numbers."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

from mirror_lib.spark.java import find_java

_LOOK_SECONDS = 2.0
_PACKAGES = ("pyspark", "aiokafka", "confluent-kafka", "crc32c", "cramjam", "pyarrow")


@dataclass(frozen=True, slots=True)
class Machine:
    """What the numbers depend on, besides the code."""

    cores: int
    cpu: str
    memory_bytes: int
    kernel: str
    python: str
    java: str
    kafka: str
    #: Cores used by other processes in the seconds before the start: should be near 0.
    busy_cores: float
    packages: dict[str, str]

    @property
    def busy(self) -> bool:
        """True if other processes used more than a quarter of a core."""
        return self.busy_cores > 0.25

    def line(self) -> str:
        """Return one line for display."""
        return (
            f"{self.cores} cores ({self.cpu}), {self.memory_bytes / 2**30:.0f} GB, Linux {self.kernel}, "
            f"Kafka and MM2 {self.kafka}, Java {self.java}, Python {self.python}, "
            f"cores busy before {self.busy_cores:.2f}"
        )


def describe(*, java: str, kafka: str) -> Machine:
    """Observe this machine for two seconds."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_cpu_model(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        python=platform.python_version(),
        java=java,
        kafka=kafka,
        busy_cores=_busy_cores(),
        packages={name: version(name) for name in _PACKAGES},
    )


def java_version() -> str:
    """Return the version of the Java that runs brokers, MirrorMaker and Spark.

    Raises:
        ConfigurationError: there is no suitable one.
    """
    answer = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True)
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return found[1] if found else "unknown"


def _busy_cores() -> float:
    # The load average would still include processes that ended minutes ago.
    return psutil.cpu_percent(interval=_LOOK_SECONDS) / 100 * (psutil.cpu_count() or 1)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
