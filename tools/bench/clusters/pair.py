"""The two clusters of all measurements."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM, KafkaCluster
from tools.bench.clusters.page_cache import PageCache
from tools.bench.clusters.topics import Topics
from tools.bench.clusters.transport import LISTENERS, Certificates, Transport

_HEAP_MEGABYTES = 1024
#: By default a broker removes the files of a deleted topic one to two minutes later, during another measurement, and
#: none in the first half minute after its start.
PROMPT_REMOVAL = {"log.segment.delete.delay.ms": "1000", "log.initial.task.delay.ms": "500"}
#: Both brokers together may use this share of a core and still count as idle.
_IDLE_SHARE = 0.15
_IDLE_LOOK_SECONDS, _IDLE_SECONDS_MOST = 0.5, 20.0


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and a target cluster of one broker each."""

    source: Topics
    target: Topics
    processes: tuple[psutil.Process, ...]
    clear: Transport
    tls: Transport
    #: Filled before each measurement, if set.
    page_cache: PageCache | None = None

    def settle(self) -> None:
        """Flush written data to disk, and wait until deleted files are removed and the brokers are idle."""
        os.sync()
        for topics in (self.source, self.target):
            topics.wait_removed()
        if self.page_cache is not None:
            self.page_cache.fill()
        deadline = time.monotonic() + _IDLE_SECONDS_MOST
        used = self._cpu_seconds()
        while time.monotonic() < deadline:
            time.sleep(_IDLE_LOOK_SECONDS)
            before, used = used, self._cpu_seconds()
            if used - before <= _IDLE_SHARE * _IDLE_LOOK_SECONDS:
                return

    def forget(self, prefix: str) -> None:
        """Delete the topics of a copy: target topics with `prefix`, and all internal ones of a copier."""
        for topics in (self.source, self.target):
            topics.delete(name for name in topics.names() if name.startswith((prefix, "mm2-")) or name == "heartbeats")

    def _cpu_seconds(self) -> float:
        total = 0.0
        for process in self.processes:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total


@contextmanager
def started_pair(
    directory: Path,
    *,
    heap_megabytes: int = _HEAP_MEGABYTES,
    overrides: Mapping[str, str] | None = None,
    full_page_cache: bool = False,
) -> Iterator[Pair]:
    """Start both clusters like Kafka's own scripts; they stop at the end.

    Args:
        heap_megabytes: of each broker.
        overrides: broker properties in addition to the usual ones.
        full_page_cache: measure as on brokers that have run for a while; the first time this may take a minute.
    """
    certificates = Certificates.make(directory / "certificates")
    clusters = [
        KafkaCluster(
            name,
            directory=directory / name,
            overrides={**PROMPT_REMOVAL, **certificates.broker_settings, **(overrides or {})},
            listeners=LISTENERS,
            jvm_flags=KAFKA_DEFAULT_JVM,
            heap_megabytes=heap_megabytes,
        )
        for name in ("source", "target")
    ]
    with ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.stop)
        page_cache = stack.enter_context(PageCache(directory)) if full_page_cache else None
        with ThreadPoolExecutor(max_workers=len(clusters)) as pool:
            list(pool.map(KafkaCluster.start, clusters))
        running = [cluster.process(cluster.node_ids[0]) for cluster in clusters]
        source, target = (Topics(cluster.bootstrap_servers, cluster.data_folders) for cluster in clusters)
        yield Pair(
            source,
            target,
            tuple(psutil.Process(process.pid) for process in running if process is not None),
            clear=certificates.transport(*clusters, tls=False),
            tls=certificates.transport(*clusters, tls=True),
            page_cache=page_cache,
        )
