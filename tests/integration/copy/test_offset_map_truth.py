"""The exact offset map against where every record truly is, as consumers of both sides see it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from mirror_lib.offsets.offset_map import Landing, OffsetMap
from tests.support.flows import Flow
from tests.support.interruptions import interrupted, killed_after, up_to
from tests.support.kafka import Record, consume, transaction, watermarks
from tests.support.mirrored_topic import MirroredTopic

PARTITIONS = 2


def some(count: int, *, start: int, partition: int) -> list[Record]:
    """Records of which no two are alike."""
    return [Record(value=b"%d-%d" % (partition, number), partition=partition) for number in range(start, start + count)]


def truth(mirrored: MirroredTopic, partition: int) -> dict[int, int]:
    """Source offset to target offset of every record that the target has."""
    there = {record.value: record.offset for record in mirrored.copied(partitions=[partition])}
    # What aborted transactions wrote is copied too, as MirrorMaker 2 does by default.
    here = consume(mirrored.source, mirrored.name, partitions=[partition], isolation="read_uncommitted")
    return {r.offset: there[r.value] for r in here if r.offset is not None and r.value in there}  # type: ignore[misc]


def assert_true(mirrored: MirroredTopic, flow: Flow) -> Mapping[Landing, int]:
    """Every record and every hole of the source is where the map says; returns how many of each there were."""
    counts = dict.fromkeys(Landing, 0)
    for partition in range(PARTITIONS):
        found = OffsetMap.of_segments(flow.ledger.segments("A->B", mirrored.name, partition))
        true = truth(mirrored, partition)
        assert found.records == len(true)
        following = sorted(true)
        for offset in range(watermarks(mirrored.source, mirrored.name, partition)[1]):
            lookup = found.to_target(offset)
            counts[lookup.landing] += 1
            if offset in true:
                assert lookup == (true[offset], Landing.EXACT)
                assert found.to_source(true[offset]) == (offset, Landing.EXACT)
            elif any(each > offset for each in following):
                assert lookup.offset == true[next(each for each in following if each > offset)]
    return counts


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    mirrored.create(partitions=PARTITIONS)
    return mirrored.flow()


@pytest.mark.parametrize("seed", range(3))
def test_of_interrupted_runs_on_a_log_with_markers(flow: Flow, mirrored: MirroredTopic, seed: int) -> None:
    """Drivers die at random places, each take-over leaves a marker on the target, and transactions leave some too."""
    random = Random(seed)
    written = aborted = 0
    for _ in range(5):
        for partition in range(PARTITIONS):
            mirrored.produce(some(random.randrange(1, 30), start=written, partition=partition))
        written += 30
        commits = random.random() < 0.7
        transaction(mirrored.source, mirrored.name, [b"t-%d" % written, b"u-%d" % written], commit=commits)
        aborted += 0 if commits else 2
        ends = [watermarks(mirrored.source, mirrored.name, partition)[1] for partition in range(PARTITIONS)]
        for _ in range(random.randrange(3)):
            interrupted(flow, killed_after(up_to(random.randrange(max(ends)) + 1)))
        assert flow.run().errors == ()

    counts = assert_true(mirrored, flow)

    assert counts[Landing.HOLE] > 0
    for row in flow.ledger.transaction_counts("A->B"):
        assert (row.undecided, row.aborted <= aborted <= row.aborted + row.uncounted) == (0, True)


@pytest.mark.parametrize("drivers", [1, 2])
def test_given_an_aborted_transaction_copied_by_drivers_that_died_then_its_records_are_not_said_to_be_none(
    flow: Flow, mirrored: MirroredTopic, drivers: int
) -> None:
    """The first run of all died: the ledger has no count of any run before it."""
    transaction(mirrored.source, mirrored.name, [b"one", b"two", b"three"], commit=False)
    for number in range(drivers):
        mirrored.produce(some(5, start=5 * number, partition=0))
        interrupted(flow, killed_after())
    mirrored.produce(some(5, start=5 * drivers, partition=0))

    assert flow.run().errors == ()

    (row,) = flow.ledger.transaction_counts("A->B")
    assert row.aborted <= 3 <= row.aborted + row.uncounted
