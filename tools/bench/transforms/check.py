"""Check that a transformed copy has the expected content: the number of records of each partition, and samples."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from confluent_kafka import Consumer, TopicPartition

from tools.bench.clusters.topics import Topics
from tools.bench.comparison.samples import Record, read_at, reader, spots
from tools.bench.errors import BenchError
from tools.bench.transforms.cases import INSERTED_HEADER, INSERTED_TEXT, Outcome
from tools.bench.workloads.payments import fields_of, is_kept, masked
from tools.bench.workloads.workload import Workload

_SPOTS, _RECORDS_AT_A_SPOT = 4, 50
_READ_AT_A_TIME, _READ_SECONDS, _STALL_SECONDS = 10_000, 1.0, 60.0
#: Partition -> source offsets of the records that must arrive, ascending.
Kept = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Check:
    """Differences of a copy from its expected content."""

    #: Number of partitions with a wrong number of records.
    wrong_partitions: int
    sampled: int
    differing: int

    @property
    def equal(self) -> bool:
        """True if no difference was found."""
        return not self.wrong_partitions and not self.differing


def kept_by_filter(source: Topics, workload: Workload, partitions: int) -> Kept:
    """Read a topic of payments once, by an ordinary client, and return which of them the filter keeps.

    Raises:
        BenchError: records do not come.
    """
    kept = {partition: array("q") for partition in range(partitions)}
    left = workload.records
    with reader(source) as consumer:
        consumer.assign([TopicPartition(workload.name, partition, 0) for partition in kept])
        changed = time.monotonic()
        while left:
            left -= _noted(consumer, kept, workload.name)
            if time.monotonic() - changed > _STALL_SECONDS:
                raise BenchError(f"{workload.name} cannot be read to its end: {left} records are missing.")
    return kept


def _noted(consumer: Consumer, kept: Mapping[int, array[int]], topic: str) -> int:
    messages = consumer.consume(_READ_AT_A_TIME, timeout=_READ_SECONDS)
    for message in messages:
        if message.error() is not None:
            raise BenchError(f"{topic} cannot be read: {message.error()}.")
        if is_kept(message.value()):
            kept[message.partition() or 0].append(message.offset() or 0)
    return len(messages)


def all_kept(workload: Workload, partitions: int) -> Kept:
    """Return all records."""
    return {partition: range(workload.records_of(partition, partitions)) for partition in range(partitions)}


def total(kept: Kept) -> int:
    """Return how many records must arrive."""
    return sum(map(len, kept.values()))


def check(source: Topics, target: Topics, topics: tuple[str, str], kept: Kept, outcome: Outcome) -> Check:
    """Count the target's records, and compare samples of each partition with the expected output.

    Args:
        topics: of the source and of the target, without other writers.

    Raises:
        BenchError: one of them cannot be read.
    """
    held = target.records_by_partition(topics[1], len(kept))
    wrong = sum(held[partition] != len(offsets) for partition, offsets in kept.items())
    sampled = differing = 0
    places = [spots(min(len(kept[each]), held[each]), _SPOTS, _RECORDS_AT_A_SPOT) for each in sorted(kept)]
    with reader(source) as ours, reader(target) as theirs:
        for chosen in zip_longest(*places):
            wanted = {partition: spot for partition, spot in enumerate(chosen) if spot is not None}
            of_source = {each: range(kept[each][spot[0]], kept[each][spot[-1]] + 1) for each, spot in wanted.items()}
            given, found = read_at(ours, topics[0], of_source), read_at(theirs, topics[1], wanted)
            for partition, spot in wanted.items():
                sampled += len(spot)
                arriving = set(kept[partition][spot[0] : spot[-1] + 1])
                expected = [record for record in given[partition] if record.offset in arriving]
                differing += count_unlike(expected, found[partition], outcome)
    return Check(wrong, sampled, differing)


def count_unlike(given: Sequence[Record], found: Sequence[Record], outcome: Outcome) -> int:
    """Return the number of records that are missing, additional, or not the expected output for a source record."""
    unlike = sum(not is_outcome(left, right, outcome) for left, right in zip(given, found, strict=False))
    return unlike + abs(len(given) - len(found))


def is_outcome(given: Record, found: Record, outcome: Outcome) -> bool:
    """Return True if a target record is the expected output for a source record; offsets do not matter."""
    headers = given.headers
    if outcome is Outcome.MARKED:
        headers = (*headers, (INSERTED_HEADER, INSERTED_TEXT.encode()))
    if (given.key, given.timestamp, headers) != (found.key, found.timestamp, found.headers):
        return False
    if outcome is not Outcome.MASKED:
        return given.value == found.value
    try:
        return fields_of(found.value) == masked(fields_of(given.value))
    except ValueError:
        return False
