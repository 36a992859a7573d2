"""Clusters for tests, and the certainty that none outlives them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.config.local_state import state_dir
from mirror_lib.features.demo.background_process import recall
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.broker_config import WITH_ACLS
from mirror_lib.processes import process_facts

#: Compaction and retention within seconds, and ACLs that can be kept while everybody may do everything.
FAST_HOUSEKEEPING: Mapping[str, str] = {
    **WITH_ACLS,
    "log.initial.task.delay.ms": "500",
    "log.cleaner.backoff.ms": "1000",
    "log.retention.check.interval.ms": "1000",
}


@dataclass(frozen=True, slots=True)
class KafkaPair:
    """Two clusters to copy between."""

    source: KafkaCluster
    target: KafkaCluster


@dataclass(frozen=True, slots=True)
class Chain:
    """Three clusters, for flows over more than one of them."""

    first: KafkaCluster
    second: KafkaCluster
    third: KafkaCluster


@contextmanager
def start_together(*clusters: KafkaCluster) -> Iterator[None]:
    """Start clusters at the same time, and end them all; nobody needs their data afterwards."""
    try:
        with ThreadPoolExecutor(max_workers=len(clusters)) as pool:
            list(pool.map(KafkaCluster.start, clusters))
        yield
    finally:
        with ThreadPoolExecutor(max_workers=len(clusters)) as pool:
            list(pool.map(KafkaCluster.kill_all, clusters))


@contextmanager
def run_folder() -> Iterator[Path]:
    """A folder for the clusters of this process; what earlier runs left when they were killed is ended first."""
    parent = state_dir() / "tests"
    _sweep(parent)
    # The start time keeps the name from being taken for ours after this number was given to another process.
    folder = parent / _own_name(os.getpid())
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        _end(folder)


def _own_name(pid: int) -> str:
    facts = process_facts(pid)
    return "" if facts is None else f"{pid}-{facts.start_ticks}"


def _sweep(parent: Path) -> None:
    for folder in parent.glob("*-*"):
        if folder.name != _own_name(int(folder.name.partition("-")[0])):
            _end(folder)


def _end(folder: Path) -> None:
    # Not `rglob`, which fails if a broker that still runs deletes a folder of its log meanwhile.
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".pid") and (process := recall(Path(parent, name))) is not None:
                process.kill()
    shutil.rmtree(folder, ignore_errors=True)
