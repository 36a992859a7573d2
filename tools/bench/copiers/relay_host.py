"""A warm Spark session in a separate process, as used by the comparison.

The process has only the session, so its CPU and memory, with those of its JVM and Python workers, are the cost of the
copy.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tools.bench.copiers.relay_session import Answer, Prepare, Request, Run, Warm, serve
from tools.bench.errors import BenchError
from tools.bench.machine.process_tree import ProcessTree

_START_SECONDS = 180.0
_STOP_SECONDS = 20.0


class RelayHost:
    """The process with the session. It starts and warms up asynchronously; use as a context manager."""

    def __init__(self, *, cores: int, directory: Path, spark_settings: Mapping[str, str] | None = None) -> None:
        """Start it.

        Args:
            spark_settings: of the session, in addition to those of this project's jobs.
        """
        self.log = directory / "spark.log"
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, cores, str(self.log), dict(spark_settings or {}))
        self._process = context.Process(target=serve, args=arguments, name="relay-host")
        self._process.start()
        theirs.close()
        self._ended: Answer | None = None
        self.tree = ProcessTree(self._pid)

    @property
    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._pipe.send(None)
        self._process.join(_STOP_SECONDS)
        # The host leads its own process group: the rest of the JVM and the workers ends with it.
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        self._process.join()

    def wait_started(self) -> None:
        """Return when the session has run its first Python tasks."""
        self._answer(_START_SECONDS)

    def warm(self) -> None:
        """Run empty tasks in the session: idle Python workers end after a minute."""
        self._ask(Warm())

    def prepare(self, config: str, flow: str) -> None:
        """Create the target topics."""
        self._ask(Prepare(config, flow))

    def begin(self, config: str, flow: str, *, max_seconds: float | None = None) -> None:
        """Start a run; `finish` waits for its end.

        Args:
            max_seconds: after these no new round begins; None uses the configuration.
        """
        self._ended = None
        self._pipe.send(Run(config, flow, max_seconds))

    def finish(self, seconds: float) -> Answer:
        """Return the result of a run."""
        answer, self._ended = self._ended, None
        return answer or self._answer(seconds)

    def ended(self) -> bool:
        """Return True if the run is over; `finish` then returns at once."""
        if self._ended is None and self._pipe.poll():
            self._ended = self._answer(0.0)
        return self._ended is not None

    def still_running(self) -> None:
        """Raise if the run has failed, or had ended before the last call already, or the process has died."""
        if self._ended is not None:
            raise BenchError("the run ended before all records were on the target.", action=self._see_log)
        if self._pipe.poll():
            # The run may end between an observation of the target and this check: the next one then has all records.
            self._ended = self._answer(0.0)
        elif not self._process.is_alive():
            raise BenchError(f"the Spark process ended with exit code {self._process.exitcode}.", action=self._see_log)

    @property
    def _see_log(self) -> str:
        return f"See {self.log} (with --keep it stays)."

    def _ask(self, request: Request) -> None:
        self._pipe.send(request)
        self._answer(_START_SECONDS)

    def _answer(self, seconds: float) -> Answer:
        try:
            if not self._pipe.poll(seconds):
                raise BenchError(f"the Spark process did not answer for {seconds:.0f} s.", action=self._see_log)
            answer: Answer = self._pipe.recv()
        except EOFError as error:
            raise BenchError("the Spark process ended.", action=self._see_log) from error
        if answer.errors:
            raise BenchError(f"the flow failed: {'; '.join(answer.errors)}", action=self._see_log)
        return answer
