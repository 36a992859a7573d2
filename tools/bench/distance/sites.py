"""Two clusters, reached locally or over a high-latency line; each end of it has a separate process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil
from confluent_kafka import Consumer, TopicPartition

from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM, KafkaCluster
from tools.bench.clusters.pair import PROMPT_REMOVAL, Pair
from tools.bench.clusters.topics import Topics
from tools.bench.clusters.transport import Transport
from tools.bench.distance.model import Case
from tools.bench.errors import BenchError
from tools.testbed.wan_direction import LineQuality

_NEAR, _FAR = "PLAINTEXT", "FAR"
_LISTENERS = {_NEAR: "PLAINTEXT", _FAR: "PLAINTEXT"}
_STOP_SECONDS = 10.0
_TIMEOUT = 30.0


class LineProcess:
    """A line in front of a cluster, in a separate process: it costs the copier's driver nothing, and its CPU time is
    known. Use as a context manager.
    """

    def __init__(self, cluster: KafkaCluster, quality: LineQuality, *, seed: int = 0) -> None:
        ports = [cluster.ports_of(node) for node in cluster.node_ids]
        self._command = [
            *(sys.executable, "-m", "tools.testbed.wan"),
            *(f"--route={node.advertised[_FAR]}={node.listeners[_FAR]}" for node in ports),
            f"--round-trip-ms={quality.round_trip_seconds * 1000:g}",
            f"--loss={quality.loss:g}",
            f"--bytes-per-second={quality.bytes_per_second:g}",
            f"--window-bytes={quality.window_bytes}",
            f"--seed={seed}",
        ]

    def __enter__(self) -> Self:
        """Start.

        Raises:
            BenchError: it does not listen.
        """
        # A separate session: an interrupt at the terminal ends the copy first, and the line with this context.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.__exit__()
            raise BenchError("the long line did not start.", action="See its error message above.")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def cpu_seconds(self) -> float:
        """Return user and system seconds so far."""
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system


@dataclass(frozen=True, slots=True)
class Sites:
    """Both clusters, and the addresses of each in each case."""

    source: KafkaCluster
    target: KafkaCluster
    pair: Pair

    def servers(self, case: Case) -> tuple[str, str]:
        """Return the addresses of source and target for a copier."""
        return (
            self.source.bootstrap_servers_of(_FAR if case.source_far else _NEAR),
            self.target.bootstrap_servers_of(_FAR if case.target_far else _NEAR),
        )

    @contextmanager
    def line(self, case: Case, quality: LineQuality, *, seed: int) -> Iterator[LineProcess | None]:
        """The line of a case, within this context."""
        wanted = case.line(quality)
        if wanted is None:
            yield None
            return
        with LineProcess(self.source if case.source_far else self.target, wanted, seed=seed) as line:
            yield line


@contextmanager
def started_sites(directory: Path) -> Iterator[Sites]:
    """Start both clusters as Kafka's own scripts would; they stop at the end."""
    source, target = (
        KafkaCluster(
            name,
            directory=directory / name,
            overrides=PROMPT_REMOVAL,
            listeners=_LISTENERS,
            proxied=[_FAR],
            jvm_flags=KAFKA_DEFAULT_JVM,
            heap_megabytes=1024,
        )
        for name in ("source", "target")
    )
    clusters = (source, target)
    try:
        with ThreadPoolExecutor(max_workers=len(clusters)) as pool:
            list(pool.map(KafkaCluster.start, clusters))
        running = [cluster.process(cluster.node_ids[0]) for cluster in clusters]
        beside_the_line = Transport(source.bootstrap_servers, target.bootstrap_servers)
        pair = Pair(
            Topics(source.bootstrap_servers, source.data_folders),
            Topics(target.bootstrap_servers, target.data_folders),
            tuple(psutil.Process(process.pid) for process in running if process is not None),
            clear=beside_the_line,
            tls=beside_the_line,
        )
        yield Sites(source, target, pair)
    finally:
        for cluster in clusters:
            cluster.stop()


def log_bounds(bootstrap_servers: str, topic: str, partitions: int) -> list[tuple[int, int]]:
    """Return log start and end offset of each partition, by an ordinary client."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "bench-distance", "log_level": 3})
    try:
        found = [consumer.get_watermark_offsets(TopicPartition(topic, each), _TIMEOUT) for each in range(partitions)]
    finally:
        consumer.close()
    return [(-1, -1) if bounds is None else (bounds[0], bounds[1]) for bounds in found]
