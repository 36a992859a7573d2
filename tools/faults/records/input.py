"""The input in the campaign: a process that writes on its own, and a few requests to it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Self

from tools.faults.errors import FaultsError
from tools.faults.records.producing import PROFILES, Burst, Command, Finish, Grow, Written, serve

#: The source may be down for a while during a request.
_ANSWER_SECONDS = 120.0

PRODUCERS = tuple(range(len(PROFILES)))


class Input:
    """Constant input into the source; as a context manager it ends with it."""

    def __init__(
        self, bootstrap_servers: str, topics: Mapping[str, int], *, rate: float, seed: int, age_seconds: float = 0.0
    ) -> None:
        """Begin to write at once.

        Args:
            topics: number of partitions by name; the topics exist.
            rate: records per second, of all producers together.
            age_seconds: age of the timestamps.
        """
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, bootstrap_servers, dict(topics), rate, seed, age_seconds), name="faults-input"
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()

    def burst(self, records: int) -> Written:
        """Write this many records at once; return when the source has them."""
        return self._ask(Burst(records))

    def grow(self, topic: str, partitions: int) -> Written:
        """Write to the new partitions of a topic as well."""
        return self._ask(Grow(topic, partitions))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Write nothing meanwhile."""
        pid = self._process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def finish(self) -> Written:
        """Write the end markers and end; return the content of every stream."""
        return self._ask(Finish())

    def _ask(self, command: Command) -> Written:
        try:
            self._pipe.send(command)
            if not self._pipe.poll(_ANSWER_SECONDS):
                raise FaultsError(f"the input process did not respond for {_ANSWER_SECONDS:.0f} s.")
            written: Written = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise FaultsError("the input process has ended.") from error
        if written.errors:
            raise FaultsError(f"the source rejected input: {'; '.join(written.errors)}")
        return written
