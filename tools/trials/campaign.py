"""Start two clusters, and play trials on them: each has its own topic."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException

from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import FAST_HOUSEKEEPING, KafkaPair, start_together
from tests.support.kafka import delete_topics
from tools.trials.auditing import audit
from tools.trials.model import differences
from tools.trials.results import TrialResult
from tools.trials.scene import Scene, Trial

#: For messages of 900 kB and many producers.
_HEAP_MEGABYTES = 768


@contextmanager
def clusters(folder: Path) -> Iterator[KafkaPair]:
    """Two clusters of one broker each, for the duration of the context.

    Raises:
        MirrorError: they could not be fetched or started.
    """
    source, target = (
        KafkaCluster(name, directory=folder / name, overrides=FAST_HOUSEKEEPING, heap_megabytes=_HEAP_MEGABYTES)
        for name in ("source", "target")
    )
    with start_together(source, target):
        yield KafkaPair(source, target)


def play_all(
    trials: Sequence[Trial],
    pair: KafkaPair,
    folder: Path,
    *,
    at_once: int,
    on_result: Callable[[TrialResult], None],
) -> None:
    """Play trials, some at a time; an interrupt ends those that run."""
    cancelled = threading.Event()
    # Those that take longest first: the end is not to wait for one of them.
    ordered = sorted(enumerate(trials), key=lambda each: (not each[1].large, not each[1].by.startswith("MM"), each[0]))
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(play, trial, pair, folder, number, cancelled) for number, trial in ordered]
        try:
            for future in as_completed(futures):
                on_result(future.result())
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def play(
    trial: Trial, pair: KafkaPair, folder: Path, number: int, cancelled: threading.Event | None = None
) -> TrialResult:
    """Make one copy and audit it; an error is in the result."""
    topic = f"t{number}-{re.sub('[^a-z0-9]+', '-', trial.name.lower()).strip('-')}"[:80]
    home = folder / topic
    home.mkdir()
    began = time.monotonic()
    expected = found = None
    failure, audit_seconds = "", 0.0
    try:
        scene = Scene(pair.source, pair.target, topic, home, cancelled=cancelled or threading.Event())
        with scene.stack:
            copy = trial.make(scene)
            expected, made = copy.expected, time.monotonic()
            found = audit(scene, copy)
            audit_seconds = time.monotonic() - made
    except (MirrorError, KafkaException, AssertionError) as error:
        failure = f"{type(error).__name__}: {error}"
    finally:
        for cluster in (pair.source, pair.target):
            delete_topics(cluster, containing=topic)
        shutil.rmtree(home, ignore_errors=True)
    wrong = () if expected is None or found is None else tuple(differences(expected, found))
    seconds = time.monotonic() - began
    return TrialResult(trial.name, trial.by, expected, found, wrong, failure, seconds, audit_seconds)
