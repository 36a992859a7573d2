"""The machine that measured, for the record beside the numbers."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

from mirror_lib.dev.java import find_java

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
    #: Average number of runnable processes over the minute before the start: should be near 0.
    load: float
    packages: dict[str, str]

    @property
    def busy(self) -> bool:
        """Whether others had work for more than a quarter of a core."""
        return self.load > 0.25

    def line(self) -> str:
        """One line for people."""
        return (
            f"{self.cores} cores ({self.cpu}), {self.memory_bytes / 2**30:.0f} GB, Linux {self.kernel}, "
            f"Kafka and MM2 {self.kafka}, Java {self.java}, Python {self.python}, load before {self.load:.2f}"
        )


def describe(*, java: str, kafka: str) -> Machine:
    """Look at this machine."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_cpu_model(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        python=platform.python_version(),
        java=java,
        kafka=kafka,
        load=os.getloadavg()[0],
        packages={name: version(name) for name in _PACKAGES},
    )


def java_version() -> str:
    """The version of the Java that runs brokers, MirrorMaker and Spark.

    Raises:
        ConfigurationError: there is none that fits.
    """
    answer = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True)
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return found[1] if found else "unknown"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
