"""One of the processes that measure the limit: it prepares its partitions, waits for the start, and runs."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from threading import Thread

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import Where
from mirror_lib.records.assemble import BatchAssembler, BatchSizes
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.stamping import stamp
from tools.bench.clusters.wire import Wire
from tools.bench.limit.halves import Fetching, Layout, Producing, read_partition, requests, split
from tools.bench.limit.model import FETCH_WAYS, FetchWay, ProduceWay

#: Maximum size for a topic with the broker's defaults (`max.message.bytes`).
_LARGEST_BATCH = 1_048_588
_ANSWER_SLACK = 64 * 1024
_PRODUCER_SECONDS = 30.0
_NO_PRODUCER = ProducerIdentity(-1, -1)


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one process: some partitions of a topic with dense offsets, by their end offsets."""

    source: str
    target: str
    topic: str
    ends: dict[int, int]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read all batches of the share."""

    way: FetchWay


@dataclass(frozen=True, slots=True)
class Produce:
    """Append all batches of the share to an empty topic, as the copy would."""

    way: ProduceWay
    topic: str


Task = Fetch | Produce


@dataclass(frozen=True, slots=True)
class Prepared:
    """The share was read once; it has this many batches."""

    batches: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task is ready to begin, at the time of the monotonic clock that is then sent."""


@dataclass(frozen=True, slots=True)
class Done:
    """A task has ended. Times are those of the monotonic clock, which all processes of a machine share."""

    began: float
    ended: float
    cpu_seconds: float
    #: Read or appended.
    batches: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The process cannot continue."""

    why: str


@dataclass(frozen=True, slots=True)
class _Ready:
    """A prepared task: a part of it in each thread."""

    parts: Sequence[Callable[[], None]]
    batches: Callable[[], int]


@dataclass(slots=True)
class _Prepared:
    """The prepared share of a process."""

    layouts: dict[int, Layout] = field(default_factory=dict)
    ready: dict[int, list[ReadyBatch]] = field(default_factory=dict)


def serve(pipe: Pipe, share: Share) -> None:
    """Prepare, then run tasks until stopped."""
    # The parent handles the interrupt and then stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    try:
        held = _prepare(share)
        producer = asyncio.run(_producer(share.target))
        pipe.send(Prepared(sum(each.batches for each in held.layouts.values())))
        while (task := pipe.recv()) is not None:
            with _opened(task, share, held, producer) as ready:
                pipe.send(Waiting())
                start = pipe.recv()
                if start is None:
                    return
                pipe.send(_run(ready, start))
    except (EOFError, BrokenPipeError):
        pass  # The parent is gone.
    except Exception as error:
        with suppress(OSError):
            pipe.send(Failed(f"{type(error).__name__}: {error}"))


def _prepare(share: Share) -> _Prepared:
    """Read everything once: the batches to produce are made from it by the copy's own code."""
    held, settings, way = _Prepared(), CopySettings(), FETCH_WAYS[0]
    with Wire(share.source, answer_bytes=way.max_bytes + _ANSWER_SLACK) as wire:
        for partition, end in share.ends.items():
            assembler = BatchAssembler(
                where=Where(topic=share.topic, partition=partition),
                offsets=range(end),
                sizes=BatchSizes(settings.batch_passthrough_min_bytes, settings.batch_max_bytes, _LARGEST_BATCH),
                read_committed=False,
            )
            ready = held.ready[partition] = []

            def take(records: bytes, ready: list[ReadyBatch] = ready, assembler: BatchAssembler = assembler) -> None:
                ready += assembler.feed(records)

            held.layouts[partition] = read_partition(wire, share.topic, partition, end, way=way, take=take)
            last = assembler.flush()
            if last is not None:
                ready.append(last)
            if assembler.failure is not None:
                raise assembler.failure
    return held


async def _producer(target: str) -> ProducerIdentity:
    settings = ClientSettings(cluster="bench", role="limit", properties={"bootstrap.servers": target})
    deadline = time.monotonic() + _PRODUCER_SECONDS
    async with RawClient(Connection.from_settings(settings)) as client:
        return await client.producers.new_producer_id(deadline=deadline)


@contextmanager
def _opened(task: Task, share: Share, held: _Prepared, producer: ProducerIdentity) -> Iterator[_Ready]:
    """Connect, and encode everything that can be encoded beforehand."""
    parts = split(list(share.ends), task.way.connections)
    with ExitStack() as stack:
        if isinstance(task, Fetch):
            room = task.way.max_bytes + _ANSWER_SLACK
            fetching = [
                Fetching(
                    stack.enter_context(Wire(share.source, answer_bytes=room)),
                    share.topic,
                    {partition: held.layouts[partition] for partition in part},
                    task.way,
                )
                for part in parts
            ]
            yield _Ready([each.run for each in fetching], lambda: sum(sum(each.read.values()) for each in fetching))
            return
        _stamp_all(held.ready, producer if task.way.idempotent else _NO_PRODUCER)
        producing = [
            Producing(
                stack.enter_context(Wire(share.target)),
                list(requests(task.topic, {partition: held.ready[partition] for partition in part})),
                task.way.in_flight,
            )
            for part in parts
        ]
        yield _Ready([each.run for each in producing], lambda: sum(each.acknowledged for each in producing))


def _stamp_all(ready: dict[int, list[ReadyBatch]], producer: ProducerIdentity) -> None:
    for batches in ready.values():
        sequence = 0
        for batch in batches:
            stamp(batch, producer.producer_id, producer.epoch, sequence if producer != _NO_PRODUCER else -1)
            sequence += batch.count


def _run(ready: _Ready, start: float) -> Done:
    """Begin at a time of the monotonic clock, with a thread for each connection."""
    errors: list[BaseException] = []

    def guarded(part: Callable[[], None]) -> None:
        try:
            part()
        except Exception as error:
            errors.append(error)

    time.sleep(max(start - time.monotonic(), 0))
    began, used = time.monotonic(), time.process_time()
    others = [Thread(target=guarded, args=(part,)) for part in ready.parts[1:]]
    for thread in others:
        thread.start()
    guarded(ready.parts[0])
    for thread in others:
        thread.join()
    ended, used = time.monotonic(), time.process_time() - used
    if errors:
        raise errors[0]
    return Done(began, ended, used, ready.batches())
