"""One measured copy of one workload: by MirrorMaker 2, by a loop around two clients or by this project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM
from tools.bench.clusters.pair import Pair
from tools.bench.clusters.window import Look, Window, copy_window
from tools.bench.comparison.results import Measurement, OwnFigures
from tools.bench.comparison.samples import compare
from tools.bench.copiers.client_loop import ClientLoop, shares
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import CopySetup, properties, render, write_config
from tools.bench.errors import BenchError
from tools.bench.machine.process_tree import ProcessTree, peak_memory, reset_peak_memory, resident_memory
from tools.bench.workloads.workload import Workload
from tools.testbed.mm2 import MirrorMaker

#: From the start of a copier to its first record on the target.
_FIRST_RECORD_SECONDS = 120.0
#: From the last record on the target to the end of the run.
_COMMIT_SECONDS = 120.0
#: As Kafka's own start script (connect-mirror-maker.sh).
_MM2_HEAP_MEGABYTES = 2048


@dataclass(frozen=True, slots=True)
class Copy:
    """What to copy, by which copier, and the folder of its files."""

    workload: Workload
    setup: CopySetup
    partitions: int
    directory: Path


@dataclass(frozen=True, slots=True)
class OwnCopy:
    """A copy by this project, and the duration of the next run, which had nothing to copy."""

    measurement: Measurement
    idle_seconds: float


def measure_mm2(pair: Pair, copy: Copy) -> Measurement:
    """Copy a workload with a fresh MirrorMaker 2, which has ended when this returns.

    Raises:
        BenchError: it did not copy everything.
    """
    maker = MirrorMaker(copy.directory, heap_megabytes=_MM2_HEAP_MEGABYTES, jvm_flags=KAFKA_DEFAULT_JVM)

    def still_running() -> None:
        if maker.process is None:
            raise BenchError(f"MirrorMaker ended. The end of its log:\n{maker.log_tail()}")

    with maker:
        maker.start(render(properties(copy.setup)))
        tree = ProcessTree(maker.pid)
        looks = pair.target.watch(
            copy.setup.target_topic,
            copy.partitions,
            expected=copy.workload.records,
            cpu_seconds=tree.cpu_seconds,
            still_running=still_running,
            start_seconds=_FIRST_RECORD_SECONDS,
        )
    return _measurement(pair, copy, looks)


def measure_client_loop(pair: Pair, copy: Copy) -> Measurement:
    """Copy a workload with fresh processes of the client loop, which have ended when this returns.

    Raises:
        BenchError: it did not copy everything.
    """
    pair.target.create(copy.setup.target_topic, copy.partitions)
    with ClientLoop(shares(copy.setup, copy.workload, copy.partitions)) as loop:
        looks = pair.target.watch(
            copy.setup.target_topic,
            copy.partitions,
            expected=copy.workload.records,
            cpu_seconds=loop.cpu_seconds,
            still_running=loop.still_running,
            start_seconds=_FIRST_RECORD_SECONDS,
        )
    return _measurement(pair, copy, looks)


def measure_mirror(pair: Pair, host: RelayHost, copy: Copy, idle_worker_bytes: int) -> OwnCopy:
    """Copy a workload with this project's Spark job on the warm session, then run once more with nothing to copy.

    Args:
        pair: the clusters.
        host: with its session warm.
        copy: what to copy.
        idle_worker_bytes: memory of a Python worker that has never copied.

    Raises:
        BenchError: the flow failed, or did not copy everything.
    """
    copy.directory.mkdir(parents=True, exist_ok=True)
    config = copy.directory / "mirror.properties"
    write_config(copy.setup, config)
    host.prepare(str(config), copy.setup.flow)
    host.warm()
    for pid in host.tree.python_workers():
        reset_peak_memory(pid)
    cpu_before = host.tree.cpu_seconds()
    host.begin(str(config), copy.setup.flow)
    looks = pair.target.watch(
        copy.setup.target_topic,
        copy.partitions,
        expected=copy.workload.records,
        cpu_seconds=host.tree.cpu_seconds,
        still_running=host.still_running,
        start_seconds=_FIRST_RECORD_SECONDS,
    )
    answer = host.finish(_COMMIT_SECONDS)
    own = OwnFigures(
        copy_seconds=answer.copy_seconds,
        run_seconds=answer.run_seconds,
        run_cpu_seconds=host.tree.cpu_seconds() - cpu_before,
        worker_idle_bytes=idle_worker_bytes,
        worker_peak_bytes=largest_worker(host, peak=True),
    )
    host.begin(str(config), copy.setup.flow)
    idle = host.finish(_COMMIT_SECONDS)
    if idle.records:
        raise BenchError(f"a second run copied {idle.records} records again.")
    return OwnCopy(_measurement(pair, copy, looks, own), idle.run_seconds)


def largest_worker(host: RelayHost, *, peak: bool) -> int:
    """Return the bytes of RAM of the session's largest Python worker, now or at its peak.

    Raises:
        BenchError: there is none.
    """
    workers = host.tree.python_workers()
    if not workers:
        raise BenchError("the Spark session has no Python worker to measure.")
    return max(peak_memory(pid) if peak else resident_memory(pid) for pid in workers)


def _measurement(pair: Pair, copy: Copy, looks: list[Look], own: OwnFigures | None = None) -> Measurement:
    comparison = compare(pair.source, pair.target, copy.workload, copy.setup.target_topic, copy.partitions)
    return Measurement(
        workload=copy.workload,
        copier=copy.setup.copier,
        round=copy.setup.round,
        window=_window(looks, copy),
        comparison=comparison,
        own=own,
    )


def _window(looks: list[Look], copy: Copy) -> Window:
    try:
        return copy_window(looks, copy.workload.records)
    except ValueError as error:
        raise BenchError(f"{copy.setup.copier.label}, {copy.workload.name}: {error}.") from error
