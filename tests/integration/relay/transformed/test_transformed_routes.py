"""Transforms that send records elsewhere: to topics that nobody has made, to other partitions, once in every case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, admin, consume, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.transforming import Killed, TransformHere, arrived, number_of, thirds, without_offsets


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    mirrored.create([*records(600), *records(300, partition=1)], partitions=2)
    settings = {"mirror.batch.max.bytes": "4096"}
    return mirrored.flow(settings)


def expected(mirrored: MirroredTopic, rest: int) -> list[Record]:
    return without_offsets(
        [each for each in consume(mirrored.source, mirrored.name) if number_of(each.value) % 3 == rest]
    )


def found(kafka_pair: KafkaPair, topic: str) -> list[list[Record]]:
    names = (f"A.{topic}", f"{topic}-one", f"{topic}-two")
    return [without_offsets(consume(kafka_pair.target, name)) for name in names]


def test_given_rows_for_topics_that_do_not_exist_when_run_then_they_are_made_and_each_record_is_in_one_of_them(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    runner = TransformHere(route=thirds(mirrored.name))
    report = flow.run(runner=runner)
    again = flow.run(runner=runner)

    assert (report.errors, report.records, again.records) == ((), 900, 0)
    assert found(mirrored.pair, mirrored.name) == [expected(mirrored, rest) for rest in range(3)]
    made = admin(mirrored.target).list_topics(timeout=10).topics
    assert len(made[f"{mirrored.name}-one"].partitions) == 2
    told = {each.target.topic: each.records for result in report.results for each in result.routed}
    assert sorted(told) == [f"{mirrored.name}-one", f"{mirrored.name}-two"]
    # Routes go on where they ended.
    mirrored.produce([*records(90, start=600), *records(60, partition=1, start=300)])
    assert flow.run(runner=runner).records == 150
    assert found(mirrored.pair, mirrored.name) == [expected(mirrored, rest) for rest in range(3)]


@pytest.mark.parametrize("dies_after", [1, 250, 299])
def test_given_a_worker_that_died_when_run_again_then_no_route_lost_or_repeated_anything(
    flow: Flow, mirrored: MirroredTopic, dies_after: int
) -> None:
    once = TransformHere(route=thirds(mirrored.name), rows_at_once=50)
    dying = replace(once, dies_after=dies_after)
    if dies_after > 200:
        dying.before_death = arrived(mirrored.target, f"{mirrored.name}-one", partitions=2)
    with pytest.raises(Killed):
        flow.run(runner=dying)

    report = flow.run(runner=once)

    assert report.errors == ()
    assert found(mirrored.pair, mirrored.name) == [expected(mirrored, rest) for rest in range(3)]


def test_given_a_partition_that_is_set_when_run_then_records_are_there(flow: Flow, mirrored: MirroredTopic) -> None:
    to_one = TransformHere(route=lambda value: (None, number_of(value) % 2))

    report = flow.run(runner=to_one, tasks_max=1)

    assert report.errors == ()
    target = mirrored.copied()
    assert len(target) == 900
    assert all(each.partition == number_of(each.value) % 2 for each in target)


def test_given_a_partition_that_does_not_exist_when_run_then_the_error_says_so(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    report = flow.run(runner=TransformHere(route=lambda _: (None, 17)))

    assert {error.reason for error in report.errors} == {"configuration"}
    assert "partition 17" in str(report.errors[0])
    assert mirrored.copied() == []
