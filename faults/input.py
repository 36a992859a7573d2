"""The input as the campaign sees it: a process that writes by itself, and a few things to ask of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from faults.errors import FaultsError
from faults.producing import PROFILES, Burst, Command, Finish, Grow, Written, serve

#: The source may be down for a while when something is asked.
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
            age_seconds: how far timestamps lie back.
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
        """Have so many records written at once; returns when the source has them."""
        return self._ask(Burst(records))

    def grow(self, topic: str, partitions: int) -> Written:
        """Have the new partitions of a topic written to as well."""
        return self._ask(Grow(topic, partitions))

    def finish(self) -> Written:
        """Have the end markers written and end; returns what every stream holds."""
        return self._ask(Finish())

    def _ask(self, command: Command) -> Written:
        try:
            self._pipe.send(command)
            if not self._pipe.poll(_ANSWER_SECONDS):
                raise FaultsError(f"the input's process did not answer for {_ANSWER_SECONDS:.0f} s.")
            written: Written = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise FaultsError("the input's process has ended.") from error
        if written.errors:
            raise FaultsError(f"the source refused input: {'; '.join(written.errors)}")
        return written
