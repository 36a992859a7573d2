"""A plugin for pytest: tests use brokers that run already, and leave them running.

It changes what `tests/conftest.py` imports, so it must be loaded before: with `-p mutants.warm`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import clusters

#: Environment variable: the folder of the running brokers.
FOLDER = "MUTANTS_BROKERS"
_NAMES = ("source", "target")
_start_together = clusters.start_together
#: By the import of the checkout that is tested, whatever its age.
KafkaCluster: Any = vars(clusters)["KafkaCluster"]


class WarmBrokers:
    """The two clusters that most integration tests share, started once for many runs of tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> WarmBrokers:
        return self

    def start(self) -> None:
        """Start what does not run."""
        for cluster in self._clusters():
            cluster.start()

    def restart(self) -> None:
        """Start them anew, without what a test has left that was ended."""
        self.end()
        self.start()

    def end(self) -> None:
        """Kill them; nobody needs their data."""
        if self.folder.is_dir():
            for cluster in self._clusters():
                cluster.kill_all()
            shutil.rmtree(self.folder)

    def _clusters(self) -> tuple[KafkaCluster, ...]:
        return tuple(
            KafkaCluster(name, directory=self.folder / name, overrides=clusters.FAST_HOUSEKEEPING) for name in _NAMES
        )

    def __exit__(self, *_: object) -> None:
        self.end()


@contextmanager
def _start_or_use(*wanted: KafkaCluster) -> Iterator[None]:
    """Leave the shared clusters running; others are started and ended as ever."""
    folder = Path(os.environ[FOLDER])
    if all(cluster.directory.parent == folder and cluster.directory.name in _NAMES for cluster in wanted):
        for cluster in wanted:
            cluster.start()
        yield
        return
    with _start_together(*wanted):
        yield


@contextmanager
def _folder() -> Iterator[Path]:
    yield Path(os.environ[FOLDER])


if FOLDER in os.environ:
    clusters.start_together = _start_or_use
    clusters.run_folder = _folder
