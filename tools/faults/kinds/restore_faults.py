"""Disks and a ledger that are put back to an earlier state, at rest: what was written since is lost there."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.faults.clusters.side import Side
from tools.faults.drivers.session import RunEnd
from tools.faults.errors import FaultsError
from tools.faults.flow_config import DOOMED_PREFIX, FLOW, TARGET_PREFIX
from tools.faults.kinds.scene import Scene
from tools.faults.kinds.state_faults import DOOMED_PARTITIONS, fill

_DECISION = "from mirror_lib.cli.main import main; main()"
_DECISION_SECONDS = 240.0


def source_restored(scene: Scene) -> bool:
    """The source loses records that were copied, and grows to the same end: only a separate topic, the input waits."""
    source, target = scene.world.source, scene.world.target
    name = f"{DOOMED_PREFIX}{scene.rng.randrange(10**6)}"
    source.topics.create(name, DOOMED_PARTITIONS, source.brokers)
    fill(source.topics.bootstrap_servers, name)
    scene.prepare()
    try:
        with scene.world.input.held(), _snapshot(source) as disks:
            fill(source.topics.bootstrap_servers, name)
            scene.catch_up()
            source.restore(disks)
            fill(source.topics.bootstrap_servers, name, first=10**9)
            end = _run(scene)
    finally:
        source.topics.delete(name)
        target.topics.delete(TARGET_PREFIX + name)
    _require(end, "source-truncated", name)
    return True


def target_restored(scene: Scene) -> bool:
    """The target loses what the last run wrote, with its positions; the records are copied again after a decision."""
    world = scene.world
    scene.catch_up()
    world.check()
    arrivals, places = copy.deepcopy(world.arrivals), world.reader.places()
    with _snapshot(world.target) as disks:
        scene.end(scene.begin())
        world.target.restore(disks)
    world.arrivals = arrivals
    world.reader.go_back(places)
    _require(_run(scene), "target-truncated", TARGET_PREFIX)
    for topic in world.source_topics():
        _decide(world.configs.main, "gaps", "accept", "--topic", topic, "--yes")
    return True


def ledger_restored(scene: Scene) -> bool:
    """The ledger is put back to its state before the last run."""
    ledger = scene.world.configs.main_ledger
    scene.catch_up()
    with tempfile.TemporaryDirectory(dir=ledger.parent) as folder:
        files = list(ledger.parent.glob(f"{ledger.name}*"))
        for file in files:
            shutil.copy(file, folder)
        scene.end(scene.begin())
        for file in ledger.parent.glob(f"{ledger.name}*"):
            file.unlink()
        for file in files:
            shutil.copy(Path(folder) / file.name, file)
    return True


def _run(scene: Scene) -> RunEnd:
    driver = scene.begin(burst=False)
    return scene.end(driver)


def _require(end: RunEnd, reason: str, what: str) -> None:
    if not any(error.reason == reason and what in error.text for error in end.errors):
        raise FaultsError(
            f"the loss was not found: {[error.text for error in end.errors]}, expected {reason} of {what}."
        )


def _decide(config: Path, *words: str) -> None:
    command = [sys.executable, "-c", _DECISION, *words, "--config", str(config), "--flow", FLOW]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DECISION_SECONDS, check=False)
    if done.returncode:
        raise FaultsError(f"{' '.join(words)} ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}")


@contextmanager
def _snapshot(side: Side) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mirror-faults-disks-") as folder:
        side.keep_disks(Path(folder))
        yield Path(folder)
