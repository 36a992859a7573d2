"""Processes that run copy tasks without Spark, kept warm: the traffic to the brokers is the same."""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from typing import Self

from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.planning.model import CopyJob, PartitionResult
from tools.bench.errors import BenchError
from tools.bench.machine.process_tree import ProcessTree

_STOP_SECONDS = 5.0


class CopyProcesses:
    """A runner for `replicate`: each process copies bins like a Spark task. Use as a context manager."""

    def __init__(self, count: int) -> None:
        """Start them; they are ready when this returns."""
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Pipe] = []
        self._processes = []
        for _ in range(count):
            pipe, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), name="copy-process")
            process.start()
            theirs.close()
            self._pipes.append(pipe)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()
        self._trees = [ProcessTree(process.pid) for process in self._processes if process.pid is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(_STOP_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()

    def copy(self, job: CopyJob) -> list[PartitionResult]:
        """Copy all bins of a job.

        Raises:
            BenchError: a process ended, or had an error that belongs to no partition.
        """
        count = len(self._pipes)
        for number, pipe in enumerate(self._pipes):
            pipe.send((job, range(number, len(job.bins), count)))
        try:
            answers = [pipe.recv() for pipe in self._pipes]
        except (EOFError, OSError) as error:
            raise BenchError("a process that copies ended.") from error
        failed = [answer for answer in answers if isinstance(answer, str)]
        if failed:
            raise BenchError(f"a process that copies failed: {failed[0]}.")
        return [result for answer in answers for result in answer]

    def kill(self) -> None:
        """Kill them at once; a current copy raises."""
        for process in self._processes:
            process.kill()

    def cpu_seconds(self) -> float:
        """Return user and system seconds of all of them so far."""
        return sum(tree.cpu_seconds() for tree in self._trees)


def _serve(pipe: Pipe) -> None:
    """Copy bins until stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe.send(None)
    with suppress(EOFError, OSError):
        while True:
            job, numbers = pipe.recv()
            try:
                pipe.send([result for number in numbers for result in copy_bin(job, number)])
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}")
