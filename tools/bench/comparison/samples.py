"""Compares samples of a copy with its source, record by record, at the same offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition

from tools.bench.clusters.topics import Topics
from tools.bench.comparison.results import Comparison
from tools.bench.errors import BenchError
from tools.bench.workloads.workload import Workload

_TIMEOUT = 30.0
_SPOTS, _RECORDS_AT_A_SPOT = 4, 50


class Record(NamedTuple):
    """The parts that must arrive unchanged, at the same offset: sources here are dense, and each target topic is
    new.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]
    headers: tuple[tuple[str, bytes | None], ...]


def spots(records: int, count: int, length: int) -> tuple[range, ...]:
    """Return `count` spans of `length` offsets, spread evenly over a partition, with its first and its last record."""
    if records <= count * length:
        return (range(records),) if records else ()
    step = (records - length) / (count - 1)
    starts = [round(step * number) for number in range(count)]
    return tuple(range(start, start + length) for start in starts)


def compare(source: Topics, target: Topics, workload: Workload, target_topic: str, partitions: int) -> Comparison:
    """Count the target's records and compare samples from every partition with the source."""
    sampled = differing = 0
    every = [
        spots(workload.records_of(partition, partitions), _SPOTS, _RECORDS_AT_A_SPOT) for partition in range(partitions)
    ]
    with reader(source) as ours, reader(target) as theirs:
        # The same spot of all partitions at once: each new assignment costs a consumer some tenths of a second.
        for chosen in zip_longest(*every):
            wanted = {partition: spot for partition, spot in enumerate(chosen) if spot is not None}
            expected, found = read_at(ours, workload.name, wanted), read_at(theirs, target_topic, wanted)
            for partition, spot in wanted.items():
                sampled += len(spot)
                differing += count_differences(expected[partition], found[partition])
    return Comparison(target.records(target_topic, partitions), sampled, differing)


def count_differences(expected: Sequence[Record], found: Sequence[Record]) -> int:
    """Return the number of records that are missing, additional or unequal."""
    unequal = sum(left != right for left, right in zip(expected, found, strict=False))
    return unequal + abs(len(expected) - len(found))


@contextmanager
def reader(topics: Topics) -> Iterator[Consumer]:
    """Consumer for `read_at`."""
    consumer = Consumer(
        {
            "bootstrap.servers": topics.bootstrap_servers,
            "group.id": "bench-compare",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            # A spot is small: records read beyond it are discarded.
            "fetch.wait.max.ms": 10,
            "max.partition.fetch.bytes": 256 * 1024,
            "log_level": 3,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def read_at(consumer: Consumer, topic: str, wanted: Mapping[int, range]) -> dict[int, list[Record]]:
    """Return the records at some spans of offsets, one of each partition.

    Raises:
        BenchError: they do not come.
    """
    consumer.assign([TopicPartition(topic, partition, spot.start) for partition, spot in wanted.items()])
    records: dict[int, list[Record]] = {partition: [] for partition in wanted}
    missing = set(wanted)
    deadline = time.monotonic() + _TIMEOUT
    while missing:
        for message in consumer.consume(_RECORDS_AT_A_SPOT, timeout=0.05):
            if message.error() is not None:
                raise BenchError(f"{topic} cannot be read: {message.error()}.")
            partition, record = message.partition() or 0, _record(message)
            if record.offset < wanted[partition].stop:
                records[partition].append(record)
            if record.offset >= wanted[partition].stop - 1:
                missing.discard(partition)
        if time.monotonic() > deadline:
            spots_missing = ", ".join(f"{each} from {wanted[each].start}" for each in sorted(missing))
            raise BenchError(f"{topic}: these partitions did not come in time: {spots_missing}.")
    return records


def _record(message: Message) -> Record:
    headers = tuple(message.headers() or ())
    return Record(message.offset() or 0, message.key(), message.value(), message.timestamp(), headers)  # type: ignore[arg-type]
