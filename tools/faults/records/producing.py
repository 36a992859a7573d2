"""The process that writes the input: a few producers with different batching, at a constant rate.

They are idempotent, wait for all replicas and retry forever, so that the source itself holds every sequence without a
hole; the checker verifies that too.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tools.faults.records.payload import PayloadMill
from tools.faults.records.sequences import Stream
from tools.faults.records.stamp import STAMP_HEADER, Content

#: One producer each: single-record batches, batches that are copied unchanged, and others in between.
PROFILES: tuple[Mapping[str, Any], ...] = (
    {"linger.ms": 0, "batch.num.messages": 1},
    {"linger.ms": 300, "compression.type": "lz4"},
    {"linger.ms": 30, "compression.type": "zstd"},
)
_SETTINGS: Mapping[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    # Infinite: a record that was given up would be a hole in the source.
    "message.timeout.ms": 0,
    "max.in.flight.requests.per.connection": 5,
    "topic.metadata.refresh.interval.ms": 2000,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.max.ms": 500,
    "log_level": 0,
}
_TICK_SECONDS = 0.02
#: A producer that could not write makes up for at most this many records.
_LARGEST_DEBT = 2000.0
_METADATA_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Burst:
    """Write this many records at once, and respond when the source has them."""

    records: int


@dataclass(frozen=True, slots=True)
class Grow:
    """A topic has more partitions now; respond when the producers write to all of them."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Write every stream's end marker, wait until the source has everything, and respond with the streams."""


Command = Burst | Grow | Finish


@dataclass(frozen=True, slots=True)
class Written:
    """The response to every command."""

    #: By stream, how many records it has.
    streams: Mapping[Stream, int]
    errors: tuple[str, ...] = ()


def serve(
    pipe: Pipe, bootstrap_servers: str, topics: Mapping[str, int], rate: float, seed: int, age_seconds: float
) -> None:
    """Write until the command to finish, or until the parent process is gone."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    writer = _Writer(bootstrap_servers, topics, seed, age_seconds)
    credit, last = 0.0, time.monotonic()
    try:
        while True:
            now = time.monotonic()
            credit, last = min(credit + (now - last) * rate, _LARGEST_DEBT), now
            while credit >= 1 and writer.write_one():
                credit -= 1
            writer.poll()
            if not pipe.poll(_TICK_SECONDS):
                continue
            match pipe.recv():
                case Burst(records):
                    writer.burst(records)
                case Grow(topic, partitions):
                    writer.grow(topic, partitions)
                case Finish():
                    writer.finish()
                    pipe.send(writer.written())
                    return
            pipe.send(writer.written())
    except (EOFError, BrokenPipeError):
        pass


class _Writer:
    def __init__(self, bootstrap_servers: str, topics: Mapping[str, int], seed: int, age_seconds: float) -> None:
        self._age_ns = int(age_seconds * 1e9)
        self._producers = [
            Producer({"bootstrap.servers": bootstrap_servers, **_SETTINGS, **profile}) for profile in PROFILES
        ]
        self._random = random.Random(seed)
        self._mill = PayloadMill(seed)
        self._streams: dict[Stream, int] = {}
        self._errors: deque[str] = deque(maxlen=5)
        for topic, partitions in topics.items():
            self._add(topic, partitions)

    def _add(self, topic: str, partitions: int) -> None:
        for producer in range(len(self._producers)):
            for partition in range(partitions):
                self._streams.setdefault(Stream(topic, partition, producer), 0)
        self._choices = sorted(self._streams)

    def write_one(self) -> bool:
        """Queue a record of a random stream; return False if the queue is full."""
        return self._write(self._random.choice(self._choices), end=False)

    def burst(self, records: int) -> None:
        for _ in range(records):
            self._surely(self.write_one)
        self._flush()

    def grow(self, topic: str, partitions: int) -> None:
        deadline = time.monotonic() + _METADATA_SECONDS
        for producer in self._producers:
            # A partition that the client does not know yet would be rejected, and leave a hole.
            while len(producer.list_topics(topic, timeout=5.0).topics[topic].partitions) < partitions:
                if time.monotonic() > deadline:
                    self._errors.append(f"{topic} did not get {partitions} partitions")
                    return
                time.sleep(0.1)
        self._add(topic, partitions)

    def finish(self) -> None:
        for stream in self._choices:
            self._surely(partial(self._write, stream, end=True))
        self._flush()

    def poll(self) -> None:
        for producer in self._producers:
            producer.poll(0)

    def written(self) -> Written:
        return Written(dict(self._streams), tuple(self._errors))

    def _write(self, stream: Stream, *, end: bool) -> bool:
        payload = self._mill.next()
        timestamp = (time.time_ns() - self._age_ns) // 1_000_000
        content = Content(stream.topic, stream.partition, timestamp, payload.key, payload.value, payload.headers)
        stamp = content.stamp(stream.producer, self._streams[stream], end=end)
        try:
            self._producers[stream.producer].produce(
                stream.topic,
                key=payload.key,
                value=payload.value,
                partition=stream.partition,
                timestamp=content.timestamp,
                headers=[*payload.headers, (STAMP_HEADER, stamp.encode())],
                on_delivery=self._delivered,
            )
        except BufferError:
            return False
        self._streams[stream] += 1
        return True

    def _surely(self, write: Callable[[], bool]) -> None:
        while not write():
            for producer in self._producers:
                producer.poll(0.01)

    def _flush(self) -> None:
        for producer in self._producers:
            producer.flush()

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._errors.append(str(error))
