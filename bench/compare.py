"""Compares samples of a copy with its source, record by record, at the same offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition

from bench.errors import BenchError
from bench.results import Comparison
from bench.topics import Topics
from bench.workloads import Workload

_TIMEOUT = 30.0
_SPOTS, _RECORDS_AT_A_SPOT = 4, 50


class Record(NamedTuple):
    """What must arrive unchanged, at the same offset: sources here are dense, and each target topic is new."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]
    headers: tuple[tuple[str, bytes | None], ...]


def spots(records: int, count: int, length: int) -> tuple[range, ...]:
    """`count` stretches of `length` offsets, spread evenly over a partition, with its first and its last record."""
    if records <= count * length:
        return (range(records),) if records else ()
    step = (records - length) / (count - 1)
    starts = [round(step * number) for number in range(count)]
    return tuple(range(start, start + length) for start in starts)


def compare(source: Topics, target: Topics, workload: Workload, target_topic: str, partitions: int) -> Comparison:
    """Count the target's records and compare samples from every partition with the source."""
    sampled = differing = 0
    with _reader(source) as ours, _reader(target) as theirs:
        for partition in range(partitions):
            for spot in spots(workload.records_of(partition, partitions), _SPOTS, _RECORDS_AT_A_SPOT):
                expected = _read(ours, workload.name, partition, spot)
                found = _read(theirs, target_topic, partition, spot)
                sampled += len(spot)
                differing += count_differences(expected, found)
    return Comparison(target.records(target_topic, partitions), sampled, differing)


def count_differences(expected: Sequence[Record], found: Sequence[Record]) -> int:
    """Records that are missing, additional or unequal."""
    unequal = sum(left != right for left, right in zip(expected, found, strict=False))
    return unequal + abs(len(expected) - len(found))


@contextmanager
def _reader(topics: Topics) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": topics.bootstrap_servers,
            "group.id": "bench-compare",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "log_level": 3,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, partition: int, offsets: range) -> list[Record]:
    consumer.assign([TopicPartition(topic, partition, offsets.start)])
    records: list[Record] = []
    deadline = time.monotonic() + _TIMEOUT
    while not records or records[-1].offset < offsets.stop - 1:
        for message in consumer.consume(len(offsets), timeout=0.2):
            if message.error() is not None:
                raise BenchError(f"{topic}-{partition} cannot be read: {message.error()}.")
            records.append(_record(message))
        if time.monotonic() > deadline:
            raise BenchError(f"{topic}-{partition}: offsets {offsets.start} to {offsets.stop} did not come in time.")
    return [record for record in records if record.offset < offsets.stop]


def _record(message: Message) -> Record:
    headers = tuple(message.headers() or ())
    return Record(message.offset() or 0, message.key(), message.value(), message.timestamp(), headers)  # type: ignore[arg-type]
