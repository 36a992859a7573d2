"""Measures the limit itself: fetching alone and producing alone, by as many processes as the copiers have.

Both begin in all processes at the same moment, after all preparations: imports, connections, the batches for the target
(made from the source's by the copy's own code) and their encoding.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from typing import Self, TypeVar

from tools.bench.clusters.pair import Pair
from tools.bench.errors import BenchError
from tools.bench.limit.halves import split
from tools.bench.limit.model import FetchWay, Half, LimitRun, ProduceWay, Ways
from tools.bench.limit.process import Done, Failed, Fetch, Prepared, Produce, Share, Task, Waiting, serve
from tools.bench.workloads.workload import Workload

#: Prefix of the measurements' target topics.
PREFIX = "limit"
_PREPARE_SECONDS = 180.0
_RUN_SECONDS = 180.0
_STOP_SECONDS = 10.0
#: Time between the message with the start time and the start.
_LEAD_SECONDS = 0.05

_Answer = TypeVar("_Answer", Prepared, Waiting, Done)


def measure_limit(
    pair: Pair,
    workload: Workload,
    *,
    partitions: int,
    processes: int,
    number: int,
    chosen: Ways | None = None,
) -> tuple[LimitRun, ...]:
    """Measure both halves of a workload in each way, with a full source topic and idle brokers.

    Args:
        pair: the clusters, reached without TLS.
        workload: whose topic is on the source.
        partitions: of the topic.
        processes: over which the partitions are split.
        number: the round. Another way begins in each.
        chosen: only these ways; otherwise all, of which the fastest counts.

    Raises:
        BenchError: not all batches were read or appended.
    """
    measured = chosen or Ways()
    ways: list[FetchWay | ProduceWay] = [*measured.fetching, *measured.producing]
    turn = number % len(ways)
    runs: list[LimitRun] = []
    with LimitProcesses(pair, workload, partitions=partitions, processes=processes) as measuring:
        for way in (*ways[turn:], *ways[:turn]):
            half = Half.FETCHING if isinstance(way, FetchWay) else Half.PRODUCING
            seconds, cpu_seconds = measuring.fetch(way) if isinstance(way, FetchWay) else measuring.produce(way)
            runs.append(LimitRun(workload, half, way.name, number, workload.records, seconds, cpu_seconds))
    return tuple(runs)


class LimitProcesses:
    """The processes that hold a workload; use as a context manager."""

    def __init__(self, pair: Pair, workload: Workload, *, partitions: int, processes: int) -> None:
        self._pair = pair
        self._workload = workload
        self._partitions = partitions
        self._produced = 0
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Pipe] = []
        self._processes = []
        for part in split(range(partitions), processes):
            ends = {partition: workload.records_of(partition, partitions) for partition in part}
            share = Share(pair.clear.source_bootstrap, pair.clear.target_bootstrap, workload.name, ends)
            pipe, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, share), name="limit", daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(pipe)
            self._processes.append(process)
        #: Batches on the source.
        self.batches = 0

    def __enter__(self) -> Self:
        try:
            self.batches = sum(self._answer(pipe, Prepared, _PREPARE_SECONDS).batches for pipe in self._pipes)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def fetch(self, way: FetchWay) -> tuple[float, float]:
        """Read all batches of the workload; return seconds and CPU seconds.

        Raises:
            BenchError: some could not be read.
        """
        done = self._run(Fetch(way))
        batches = sum(each.batches for each in done)
        if batches != self.batches:
            raise BenchError(f"{self._workload.name}: {batches} of {self.batches} batches were fetched.")
        return _spent(done)

    def produce(self, way: ProduceWay) -> tuple[float, float]:
        """Append all batches of the workload to a new topic, which is then deleted; return seconds and CPU seconds.

        Raises:
            BenchError: the topic does not hold all records afterwards.
        """
        self._produced += 1
        topic = f"{PREFIX}{self._produced}.{self._workload.name}"
        target = self._pair.target
        target.create(topic, self._partitions)
        try:
            spent = self.append(way, topic)
            records = target.records(topic, self._partitions)
            if records != self._workload.records:
                raise BenchError(f"{topic} holds {records} of {self._workload.records} records.")
        finally:
            target.delete([topic])
        return spent

    def append(self, way: ProduceWay, topic: str) -> tuple[float, float]:
        """Append all batches of the workload to an empty topic; return seconds and CPU seconds.

        Raises:
            BenchError: a batch was not acknowledged at its offset on the source.
        """
        return _spent(self._run(Produce(way, topic)))

    def _run(self, task: Task) -> list[Done]:
        for pipe in self._pipes:
            pipe.send(task)
        for pipe in self._pipes:
            self._answer(pipe, Waiting, _PREPARE_SECONDS)
        self._pair.settle()
        start = time.monotonic() + _LEAD_SECONDS
        for pipe in self._pipes:
            pipe.send(start)
        return [self._answer(pipe, Done, _RUN_SECONDS) for pipe in self._pipes]

    def _answer(self, pipe: Pipe, kind: type[_Answer], seconds: float) -> _Answer:
        try:
            if not pipe.poll(seconds):
                raise BenchError(f"a process that measures the limit did not answer for {seconds:.0f} s.")
            answer = pipe.recv()
        except (EOFError, OSError) as error:
            raise BenchError("a process that measures the limit ended.") from error
        if isinstance(answer, Failed):
            raise BenchError(f"{self._workload.name}: the limit could not be measured: {answer.why}")
        assert isinstance(answer, kind)
        return answer

    def _stop(self) -> None:
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.send(None)
            pipe.close()
        for process in self._processes:
            process.join(_STOP_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


def _spent(done: Sequence[Done]) -> tuple[float, float]:
    """Return the time from the first request to the last response, over all processes; and their CPU together."""
    seconds = max(each.ended for each in done) - min(each.began for each in done)
    return seconds, sum(each.cpu_seconds for each in done)
