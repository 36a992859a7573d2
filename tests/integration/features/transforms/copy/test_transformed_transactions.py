"""Transforms that never give the same twice, written in transactions: readers of committed records get each once."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from mirror_lib.features.transforms.copy import row_sink as writing
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, create_topic, produce, records, watermarks
from tests.support.mirrored_topic import MirroredTopic
from tests.support.transforming import (
    WITH_CHANCE,
    Killed,
    Route,
    RowFunction,
    TransformHere,
    arrived,
    marked,
    marked_twice,
    originals,
    unchanged,
)

_ENABLED = {**WITH_CHANCE, "mirror.batch.max.bytes": "4096"}
_ROUTED = {
    **_ENABLED,
    "A->B.mirror.transform.stamp.topic": "if(rand() < 0.5, 'one', topic)",
    # Whoever is fenced by a transactional id need not be waited for, by whichever of them.
    "mirror.run.lease.seconds": "3600",
}


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    mirrored.create([*records(1000), *records(400, partition=1)], partitions=2)
    return mirrored.flow(_ENABLED)


@pytest.fixture
def every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions end as often as they can."""
    monkeypatch.setattr(writing, "TRANSACTION_SECONDS", 0.0)


def once() -> TransformHere:
    return TransformHere(marked, exact=False, rows_at_once=50)


def on_target(mirrored: MirroredTopic, isolation: str = "read_committed") -> list[Record]:
    return mirrored.copied(isolation=isolation)


def test_given_a_transform_with_chance_when_run_twice_then_each_record_is_there_once_and_the_second_run_is_idle(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    report = flow.run(runner=once())
    again = flow.run(runner=once())

    assert (report.errors, report.records) == ((), 1400)
    assert (again.errors, again.records, again.results) == ((), 0, ())
    assert originals(on_target(mirrored)) == originals(consume(mirrored.source, mirrored.name))
    # The marker of one transaction stands behind the records.
    assert [watermarks(mirrored.target, mirrored.remote, at)[1] for at in (0, 1)] == [1001, 401]
    # New ones go behind it, and offsets are mapped.
    mirrored.produce(records(30, start=1000))
    (result,) = flow.run(runner=once()).results
    assert [(run.source_first, run.target_first, run.count) for run in result.runs] == [(1000, 1001, 30)]
    assert originals(on_target(mirrored)) == originals(consume(mirrored.source, mirrored.name))


@pytest.mark.parametrize("dies_after", [1, 250, 399])
def test_given_a_worker_that_died_in_a_transaction_when_run_again_then_nothing_of_it_counts(
    flow: Flow, mirrored: MirroredTopic, dies_after: int
) -> None:
    runner = replace(once(), dies_after=dies_after)
    if dies_after > 200:
        runner.before_death = arrived(mirrored.target, mirrored.remote, partitions=2)
    with pytest.raises(Killed):
        flow.run(runner=runner)
    assert on_target(mirrored) == []

    report = flow.run(runner=once())

    assert report.errors == ()
    assert originals(on_target(mirrored)) == originals(consume(mirrored.source, mirrored.name))


@pytest.mark.usefixtures("every_batch")
@pytest.mark.parametrize("function", [marked, marked_twice], ids=["one row each", "two rows each"])
@pytest.mark.parametrize("dies_after", [130, 333])
def test_given_a_worker_that_died_after_some_transactions_when_run_again_then_it_goes_on_behind_them(
    flow: Flow, mirrored: MirroredTopic, function: RowFunction, dies_after: int
) -> None:
    # An odd number of rows at a time: the rows of one record come in two batches.
    runner = TransformHere(function, exact=False, rows_at_once=33)
    with pytest.raises(Killed):
        flow.run(runner=replace(runner, dies_after=dies_after))
    before = on_target(mirrored)

    report = flow.run(runner=runner)

    assert report.errors == ()
    found = on_target(mirrored)
    assert 0 < len(before) < len(found)
    assert [each.value for each in before if each.partition == 0] == [
        each.value for each in found if each.partition == 0
    ][: sum(each.partition == 0 for each in before)]
    rows = 1 if function is marked else 2
    source = originals(consume(mirrored.source, mirrored.name))
    assert originals(found) == [each for each in source for _ in range(rows)]
    # Where a record became several rows, the first of them is where it is.
    assert sum(result.recovered for result in report.results) == len(before) // rows
    for result in report.results:
        offsets = [each.offset for each in found if each.partition == result.source.partition]
        assert [run.target_first + number for run in result.runs for number in range(run.count)] == offsets[::rows]


@pytest.mark.usefixtures("every_batch")
def test_given_an_attempt_that_died_when_spark_tries_again_in_the_same_run_then_each_record_is_there_once(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    def with_second_attempt(job: CopyJob) -> list[PartitionResult]:
        with pytest.raises(Killed):
            replace(once(), dies_after=330)(job)
        return replace(once(), attempt=1)(job)

    report = flow.run(runner=with_second_attempt)

    assert report.errors == ()
    assert originals(on_target(mirrored)) == originals(consume(mirrored.source, mirrored.name))


def test_given_a_run_that_died_between_its_last_transaction_and_its_own_commit_when_run_again_then_nothing_repeats(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    def dies_at_the_end(job: CopyJob) -> list[PartitionResult]:
        once()(job)
        raise Killed

    with pytest.raises(Killed):
        flow.run(runner=dies_at_the_end)

    report = flow.run(runner=once())

    assert (report.errors, report.records) == ((), 0)
    assert originals(on_target(mirrored)) == originals(consume(mirrored.source, mirrored.name))
    assert sum(result.recovered for result in report.results) == 1400
    assert flow.run(runner=once()).results == ()


def test_given_an_attempt_that_wakes_up_when_another_has_ended_then_nothing_of_it_is_ever_seen(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    asleep, wake = threading.Event(), threading.Event()

    def sleeps(rows: pa.RecordBatch) -> pa.RecordBatch:
        asleep.set()
        wake.wait(60)
        return marked(rows)

    late: list[PartitionResult] = []

    def overtaken(job: CopyJob) -> list[PartitionResult]:
        sleeper = threading.Thread(target=lambda: late.extend(TransformHere(sleeps, exact=False)(job)))
        sleeper.start()
        assert asleep.wait(60)
        found = replace(once(), attempt=1)(job)
        wake.set()
        sleeper.join(60)
        return found

    report = flow.run(runner=overtaken, tasks_max=1)

    assert report.errors == ()
    assert late
    assert all(result.error is not None and not result.certain for result in late)
    assert originals(on_target(mirrored)) == originals(consume(mirrored.source, mirrored.name))
    assert flow.run(runner=once()).results == ()


@pytest.mark.usefixtures("every_batch")
@pytest.mark.parametrize("dies_after", [160, 299])
def test_given_routes_and_chance_when_a_worker_died_then_each_record_is_in_one_place_once(
    mirrored: MirroredTopic, dies_after: int
) -> None:
    mirrored.create([*records(600), *records(300, partition=1)], partitions=2)
    flow = mirrored.flow(_ROUTED)
    runner = replace(once(), route=by_number(mirrored.name))
    with pytest.raises(Killed):
        flow.run(runner=replace(runner, dies_after=dies_after))

    report = flow.run(runner=runner)

    assert report.errors == ()
    found = [*on_target(mirrored), *consume(mirrored.target, f"{mirrored.name}-else")]
    assert by_value(found) == by_value(consume(mirrored.source, mirrored.name))
    routed = {each.target: each for result in report.results for each in result.routed}
    for partition in (0, 1):
        place = TopicPartition(f"{mirrored.name}-else", partition)
        end = watermarks(mirrored.target, *place)[1]
        assert (routed[place].target_first, routed[place].target_next) == (0, end)


def test_given_two_topics_that_meet_in_a_third_when_a_worker_died_then_each_record_is_there_once(
    mirrored: MirroredTopic,
) -> None:
    topics = two_topics(mirrored)
    flow = mirrored.flow(_ROUTED, topics=",".join(topics))
    runner = replace(once(), route=lambda _: (f"{mirrored.name}-all", None))
    with pytest.raises(Killed):
        flow.run(runner=replace(runner, dies_after=230))

    report = flow.run(runner=runner)

    assert report.errors == ()
    wanted = [each for topic in topics for each in consume(mirrored.source, topic)]
    assert by_value(consume(mirrored.target, f"{mirrored.name}-all")) == by_value(wanted)


@pytest.mark.parametrize("transform", ["with chance", "deterministic", "none"])
def test_given_topics_that_are_merged_when_a_run_died_then_the_next_one_goes_on(
    mirrored: MirroredTopic, transform: str
) -> None:
    topics = two_topics(mirrored)
    renamed = ", ".join(f"{topic}:{mirrored.name}" for topic in topics)
    settings = {**_ENABLED, "mirror.topics.rename": renamed, "mirror.topics.merge.enabled": "true"}
    if transform != "with chance":
        del settings["A->B.mirror.transform.stamp.headers"]
        settings["A->B.mirror.transform.stamp.value"] = "value"
    if transform == "none":
        settings = {name: text for name, text in settings.items() if "mirror.transform" not in name}
    flow = mirrored.flow(topics=",".join(topics), settings=settings)
    runner = once() if transform == "with chance" else TransformHere(unchanged, rows_at_once=50)
    with pytest.raises(Killed):
        flow.run(runner=replace(runner, dies_after=230))

    report = flow.run(runner=runner)

    assert report.errors == ()
    wanted = [each for topic in topics for each in consume(mirrored.source, topic)]
    assert by_value(consume(mirrored.target, mirrored.name)) == by_value(wanted)
    assert flow.run(runner=runner).results == ()


def test_given_a_run_without_transactions_that_died_when_they_are_enabled_then_what_it_wrote_is_found(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(600))
    route = {"A->B.mirror.transform.stamp.topic": "topic", "A->B.mirror.transform.stamp.headers": "headers"}
    settings = {**_ENABLED, **route, "B.exactly.once.source.support": "disabled"}
    before = mirrored.flow(settings)
    runner = TransformHere(unchanged, rows_at_once=50, route=by_number(mirrored.name))
    written = arrived(mirrored.target, f"{mirrored.name}-else")
    with pytest.raises(Killed):
        before.run(runner=replace(runner, dies_after=400, before_death=written))
    flow = mirrored.flow({**_ENABLED, **route})

    report = flow.run(runner=runner)

    assert report.errors == ()
    found = [*on_target(mirrored), *consume(mirrored.target, f"{mirrored.name}-else")]
    assert by_value(found) == by_value(consume(mirrored.source, mirrored.name))


def by_number(topic: str) -> Route:
    """Every second record goes to another topic."""

    def route(value: bytes | None) -> tuple[str | None, int | None]:
        number = int((value or b"").split(b"-")[1].split(b"#")[0])
        return (f"{topic}-else" if number % 2 else None), None

    return route


def two_topics(mirrored: MirroredTopic) -> list[str]:
    """Two topics of the source with records in both partitions."""
    topics = [f"{mirrored.name}-a", f"{mirrored.name}-b"]
    for topic in topics:
        create_topic(mirrored.source, topic, partitions=2)
        produce(mirrored.source, topic, [*records(300), *records(200, partition=1)])
    return topics


def by_value(found: list[Record]) -> Counter[tuple[int, bytes | None, bytes]]:
    """How often there is each record, whatever its place."""
    return Counter((each.partition, each.key, (each.value or b"").split(b"#")[0]) for each in found)
