"""The exact offset map against where every record truly is, as consumers of both sides see it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from mirror_lib.offsets.offset_map import Landing, OffsetMap
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.interruptions import interrupted, killed_after, up_to
from tests.support.kafka import Record, consume, create_topic, produce, transaction, watermarks

PARTITIONS = 2


def some(count: int, *, start: int, partition: int) -> list[Record]:
    """Records of which no two are alike."""
    return [Record(value=b"%d-%d" % (partition, number), partition=partition) for number in range(start, start + count)]


def truth(pair: KafkaPair, topic: str, partition: int) -> dict[int, int]:
    """Source offset to target offset of every record that the target has."""
    there = {record.value: record.offset for record in consume(pair.target, f"A.{topic}", partitions=[partition])}
    # What aborted transactions wrote is copied too, as MirrorMaker 2 does by default.
    here = consume(pair.source, topic, partitions=[partition], isolation="read_uncommitted")
    return {r.offset: there[r.value] for r in here if r.offset is not None and r.value in there}  # type: ignore[misc]


def assert_true(flow: Flow, pair: KafkaPair, topic: str) -> Mapping[Landing, int]:
    """Every record and every hole of the source is where the map says; returns how many of each there were."""
    counts = dict.fromkeys(Landing, 0)
    for partition in range(PARTITIONS):
        found = OffsetMap.of_segments(flow.ledger.segments("A->B", topic, partition))
        true = truth(pair, topic, partition)
        assert found.records == len(true)
        following = sorted(true)
        for offset in range(watermarks(pair.source, topic, partition)[1]):
            lookup = found.to_target(offset)
            counts[lookup.landing] += 1
            if offset in true:
                assert lookup == (true[offset], Landing.EXACT)
                assert found.to_source(true[offset]) == (offset, Landing.EXACT)
            elif any(each > offset for each in following):
                assert lookup.offset == true[next(each for each in following if each > offset)]
    return counts


@pytest.fixture
def flow(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> Flow:
    create_topic(kafka_pair.source, topic_name, partitions=PARTITIONS)
    return pair_flow(tmp_path, kafka_pair, topics=topic_name)


def test_of_runs_without_faults(flow: Flow, kafka_pair: KafkaPair, topic_name: str) -> None:
    for run in range(3):
        for partition in range(PARTITIONS):
            produce(kafka_pair.source, topic_name, some(40, start=40 * run, partition=partition))
        assert flow.run().errors == ()

    assert assert_true(flow, kafka_pair, topic_name)[Landing.EXACT] == 3 * 40 * PARTITIONS
    # However many runs there were, a partition without holes is one row.
    assert len(flow.ledger.segments("A->B", topic_name, 0)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_of_interrupted_runs_on_a_log_with_markers(
    flow: Flow, kafka_pair: KafkaPair, topic_name: str, seed: int
) -> None:
    """Drivers die at random places, each take-over leaves a marker on the target, and transactions leave some too."""
    random = Random(seed)
    written = 0
    for _ in range(5):
        for partition in range(PARTITIONS):
            produce(kafka_pair.source, topic_name, some(random.randrange(1, 30), start=written, partition=partition))
        written += 30
        transaction(kafka_pair.source, topic_name, [b"t-%d" % written, b"u-%d" % written], commit=random.random() < 0.7)
        ends = [watermarks(kafka_pair.source, topic_name, partition)[1] for partition in range(PARTITIONS)]
        for _ in range(random.randrange(3)):
            interrupted(flow, killed_after(up_to(random.randrange(max(ends)) + 1)))
        assert flow.run().errors == ()

    counts = assert_true(flow, kafka_pair, topic_name)

    assert counts[Landing.HOLE] > 0
