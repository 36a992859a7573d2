"""End a job to which Spark gives no executor, instead of waiting for ever with the flow's lock held."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mirror_lib.errors import NoExecutorsError, Where
from spark_jobs.failures import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
#: Masters without executors: the driver runs the tasks. `local-cluster[...]` has some.
_HERE = re.compile(r"local(\[.*\])?")
#: A session that has had executors may lose them: Spark replaces those.
_seen: set[str] = set()


@contextmanager
def executors_within(spark: SparkSession, seconds: float, flow: str, *, consequence: str) -> Iterator[None]:
    """Run Spark jobs within this context, and cancel them if no executor has registered after some seconds.

    With dynamic allocation, Spark asks for executors only when a job waits for them, so it cannot be checked before.
    A Spark Connect server does not show its executors: nothing is checked there.

    Args:
        seconds: `mirror.spark.executor.wait.seconds`; 0 waits for ever.
        consequence: what was not done and how it is repeated, for the message.

    Raises:
        NoExecutorsError: the jobs were cancelled.
    """
    context = _context(spark)
    if not seconds or context is None or _HERE.fullmatch(context.master) or context.applicationId in _seen:
        yield
        return
    watch = _Watch(lambda: _executors(context), context.cancelAllJobs, seconds)
    watch.start()
    try:
        yield
    except Exception as error:
        # Spark's own error, or the project's for it.
        if watch.has_given_up:
            raise _no_executors(context.master, seconds, flow, consequence) from error
        raise
    finally:
        watch.end()
        if watch.has_seen_one:
            _seen.add(context.applicationId)


class _Watch(threading.Thread):
    """Counts executors until there is one, or the time is over."""

    def __init__(self, count: Callable[[], int], give_up: Callable[[], object], seconds: float) -> None:
        super().__init__(name="executors", daemon=True)
        self._count = count
        self._give_up = give_up
        self._seconds = seconds
        self._ended = threading.Event()
        self.has_seen_one = False
        self.has_given_up = False

    def run(self) -> None:
        """Look once a second."""
        deadline = time.monotonic() + self._seconds
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                if self.has_given_up:
                    # The job may not have been submitted when the others were cancelled.
                    self._give_up()
                    continue
                self.has_seen_one = self._count() > 0
            except spark_errors():
                # The jobs fail with the same error, and say so.
                return
            if self.has_seen_one:
                return
            if time.monotonic() >= deadline:
                self.has_given_up = True
                _log.error("Spark has given no executor in %g s: the job is cancelled.", self._seconds)

    def end(self) -> None:
        """Stop looking; returns when the thread has ended."""
        self._ended.set()
        self.join()


def _context(spark: SparkSession) -> Any:
    """The classic session's context; None for a session of Spark Connect."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except (PySparkException, AttributeError):
        return None


def _executors(context: Any) -> int:
    # The driver's block manager is among them.
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001  # PySpark has no call for it.


def _no_executors(master: str, seconds: float, flow: str, consequence: str) -> NoExecutorsError:
    return NoExecutorsError(
        f"Spark ({master}) has given the job no executor within {seconds:g} s (mirror.spark.executor.wait.seconds).",
        where=Where(flow=flow),
        action="Usual causes: the cluster has no workers, or other applications use all cores; an executor asks for "
        "more memory or cores than a worker or container may have (spark.executor.memory, spark.executor.cores); a "
        "queue or namespace has a quota; executors start and end at once because they cannot reach the driver "
        "(spark.driver.host) or lack Java or Python. Spark's web UI and the executors' logs show which. "
        f"{consequence}",
    )
