"""Copies through transforms: what the target gets, and that it gets it once, whatever happened before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.copy.model import FailedRecord
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.transforming import (
    Killed,
    TransformHere,
    arrived,
    number_of,
    only,
    repeated,
    upper,
    with_values,
    without_offsets,
)


def even(value: bytes | None) -> bool:
    return number_of(value) % 2 == 0


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    mirrored.create([*records(1000), *records(400, partition=1)], partitions=2)
    # Small batches, so that a worker that dies has written some.
    return mirrored.flow({"mirror.batch.max.bytes": "4096"})


def test_given_every_shape_of_record_when_nothing_is_changed_then_the_target_holds_the_same(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create()
    shapes = [
        Record(),
        Record(value=b"", key=b""),
        Record(key=b"tombstone"),
        Record(value=b"twice", headers=(("h", b"1"), ("h", b"2"), ("h", None), ("", b""))),
        *records(50),
    ]
    mirrored.produce(shapes)
    flow = mirrored.flow()

    report = flow.run(runner=TransformHere())

    assert report.errors == ()
    assert without_offsets(mirrored.copied()) == without_offsets(consume(mirrored.source, mirrored.name))


def test_given_a_filter_when_run_twice_then_the_second_run_finds_nothing_and_offsets_are_mapped(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    report = flow.run(runner=TransformHere(only(even)))
    again = flow.run(runner=TransformHere(only(even)))

    assert (report.records, again.records, again.rounds) == (700, 0, 1)
    with FlowClusters.connect(flow.config) as clusters:
        stored = clusters.positions.read_all().positions
    known = {
        place.partition: each.position.last_record for place, each in stored.items() if place.topic == mirrored.name
    }
    # The source is known again by what was read, whatever the filter made of it.
    assert {number: record is not None for number, record in known.items()} == {0: True, 1: True}
    wanted = [each for each in consume(mirrored.source, mirrored.name) if even(each.value)]
    assert without_offsets(mirrored.copied()) == without_offsets(wanted)
    assert sum(row.records for row in flow.ledger.segments("A->B", mirrored.name, 0)) == 500


@pytest.mark.parametrize("function", [only(even), with_values(upper), repeated(2)], ids=["filter", "mask", "several"])
@pytest.mark.parametrize("dies_after", [0, 1, 250, 399])
def test_given_a_worker_that_died_when_run_again_then_nothing_is_lost_or_repeated(
    flow: Flow, mirrored: MirroredTopic, function: TransformHere, dies_after: int
) -> None:
    once = TransformHere(function, rows_at_once=50)  # type: ignore[arg-type]
    dying = replace(once, dies_after=dies_after)
    if dies_after > 200:
        dying.before_death = arrived(mirrored.target, mirrored.remote, partitions=2)
    with pytest.raises(Killed):
        flow.run(runner=dying)
    left = len(mirrored.copied())

    report = flow.run(runner=once)

    assert report.errors == ()
    assert sum(result.recovered for result in report.results) <= left
    expected = [row for record in consume(mirrored.source, mirrored.name) for row in made_of(record, once)]
    assert without_offsets(mirrored.copied()) == without_offsets(expected)


def made_of(record: Record, runner: TransformHere) -> list[Record]:
    """The same in plain Python."""
    import pyarrow as pa

    rows = pa.RecordBatch.from_pylist([{"value": record.value}], schema=pa.schema([("value", pa.binary())]))
    return [replace(record, value=value) for value in runner.function(rows).column("value").to_pylist()]


def test_given_another_transform_than_the_interrupted_run_had_when_run_then_it_stops_and_says_so(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    written = arrived(mirrored.target, mirrored.remote, partitions=2)
    with pytest.raises(Killed):
        flow.run(runner=TransformHere(with_values(upper), dies_after=300, rows_at_once=50, before_death=written))
    before = mirrored.copied()

    report = flow.run(runner=TransformHere(only(even)))

    # A partition of which nothing was written yet may go on with any transform.
    begun = {each.partition for each in before}
    assert {(error.reason, error.where.partition) for error in report.errors} == {
        ("target-diverged", partition) for partition in begun
    }
    assert "the transform has changed" in str(report.errors[0])
    after = [each for each in mirrored.copied() if each.partition in begun]
    assert without_offsets(after) == without_offsets(before)


def failing(topic: str, *offsets: int) -> dict[TopicPartition, list[FailedRecord]]:
    refused = MirrorError("the record cannot be transformed.")
    return {TopicPartition(topic, 0): [FailedRecord(offset, refused) for offset in offsets]}


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_given_records_that_fail_when_the_policy_leaves_them_out_then_the_others_are_copied_and_gaps_told(
    mirrored: MirroredTopic, policy: str
) -> None:
    mirrored.create(records(300))
    flow = mirrored.flow({"mirror.poison.policy": policy})

    report = flow.run(runner=TransformHere(failed=failing(mirrored.name, 10, 11, 299)))

    assert (report.errors, report.records, report.skipped) == ((), 297, 3)
    assert [result.source_next for result in report.results] == [300]
    found = mirrored.copied()
    assert {10, 11, 299}.isdisjoint(number_of(each.value) for each in found)


def test_given_a_partition_that_does_not_exist_when_run_then_the_error_says_so(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    # Where rows go that there is a place for: tests/integration/features/verify/test_verify_routed.py.
    report = flow.run(runner=TransformHere(route=lambda _: (None, 17)))

    assert {error.reason for error in report.errors} == {"configuration"}
    assert "partition 17" in str(report.errors[0])
    assert mirrored.copied() == []
