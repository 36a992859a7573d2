"""Verification of what transforms send to other partitions, without Spark: the source goes the same ways again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.features.transforms.copy import row_sink as writing
from mirror_lib.features.verify.findings import DifferenceKind, RoutedVerdict, Verdict
from mirror_lib.features.verify.model import Budget, VerifyMode
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.transforming import Killed, Route, TransformHere, number_of, thirds
from tests.support.verifying import changed, verify, verify_transformed

_Change = Callable[[list[Record]], Sequence[Record]]


def to_one_partition(topic: str) -> Route:
    """A half stays, the other goes to the first partition of a topic, wherever it is from."""
    return lambda value: (f"{topic}-one", 0) if number_of(value) % 2 else (None, None)


def settings(topic: str, column: str = "topic") -> dict[str, str]:
    """A transform of which only what it may do counts: a function stands in its place."""
    return {
        "mirror.batch.max.bytes": "4096",
        "A->B.mirror.transforms": "any",
        "A->B.mirror.transform.any.topics": topic,
        f"A->B.mirror.transform.any.{column}": "'0'" if column == "topic" else "0",
    }


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    mirrored.create([*records(600), *records(300, partition=1)], partitions=2)
    return mirrored.flow(settings(mirrored.name))


def change(pair: KafkaPair, topic: str, tampering: _Change, copy: list[Record] | None = None) -> None:
    """Put a changed copy of the first partition of a topic in its place; by default of what is there."""
    copy = copy or consume(pair.target, topic)
    first = [each for each in copy if each.partition == 0]
    delete_topic(pair.target, topic)
    create_topic(pair.target, topic, partitions=2)
    produce(pair.target, topic, [*tampering(first), *(each for each in copy if each.partition)])


def of(report: VerifyReport, topic: str, partition: int = 0) -> RoutedVerdict:
    (found,) = (each for each in report.routed if each.target == TopicPartition(topic, partition))
    return found


def test_given_records_in_three_topics_when_verified_then_all_are_equal_and_recent_compares_only_what_came_since(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    route = thirds(mirrored.name)
    flow.run(runner=TransformHere(route=route))
    first = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)
    nothing = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)
    mirrored.produce(records(90, start=600))
    flow.run(runner=TransformHere(route=route))
    recent = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)
    mirrored.produce(records(60, partition=1, start=300))
    flow.run(runner=TransformHere(route=route))

    report = verify_transformed(flow, route=route)

    assert (first.exit_code, nothing.exit_code, recent.exit_code) == (0, 0, 0), recent.to_dict()
    assert (nothing.routed, len(nothing.confirmed)) == ((), 2)
    # The range takes the second run up; that of the other partition has nothing new.
    of_first = {(f"{mirrored.name}-one", 0): 230, (f"{mirrored.name}-two", 0): 230}
    assert {tuple(each.target): each.records for each in recent.routed} == of_first
    assert report.exit_code == 0, report.to_dict()
    assert sum(each.records for each in report.verdicts) == 350
    of_second = {(f"{mirrored.name}-one", 1): 120, (f"{mirrored.name}-two", 1): 120}
    assert {tuple(each.target): each.records for each in report.routed} == {**of_first, **of_second}


_CHANGES: dict[str, tuple[_Change, list[tuple[DifferenceKind, int | None, int | None]]]] = {
    "deleted": (lambda copy: copy[:50] + copy[51:], [(DifferenceKind.MISSING, 151, None)]),
    "duplicated": (lambda copy: [*copy[:60], copy[50], *copy[60:]], []),
    "altered": (changed(50, key=b"!"), [(DifferenceKind.MISSING, 151, None), (DifferenceKind.EXTRA, None, 50)]),
    "later": (
        lambda copy: changed(50, timestamp_ms=(copy[50].timestamp_ms or 0) + 1)(copy),
        [(DifferenceKind.MISSING, 151, None), (DifferenceKind.EXTRA, None, 50)],
    ),
    "in another order": (lambda copy: copy[::-1], []),
}


def test_given_another_way_or_a_topic_that_was_tampered_with_when_verified_then_it_is_told_what_and_where(
    flow: Flow, mirrored: MirroredTopic, subtests: pytest.Subtests
) -> None:
    route, one = thirds(mirrored.name), f"{mirrored.name}-one"
    flow.run(runner=TransformHere(route=route))
    other = verify_transformed(flow, route=lambda value: (one, None) if number_of(value) == 1 else (None, None))
    assert other.exit_code == 3
    assert of(other, one).verdict is Verdict.DIFFERENT
    assert of(other, f"{mirrored.name}-two").standing == 200

    copy = consume(mirrored.target, one)
    for name, (tampering, expected) in _CHANGES.items():
        with subtests.test(name):
            change(mirrored.pair, one, tampering, copy)

            report = verify_transformed(flow, route=route)

            found = of(report, one)
            places = [(each.kind, each.source_offset, each.target_offset) for each in found.differences]
            if name == "duplicated":
                # The last record of the topic now stands where the flow has written nothing.
                assert (found.verdict, report.exit_code) == (Verdict.DIFFERENT, 3)
                assert (DifferenceKind.EXTRA, 151, 60) in places
                continue
            assert report.exit_code == (3 if expected else 0), report.to_dict()
            assert sorted(places, key=str) == sorted(expected, key=str)
            assert report.count(Verdict.DIFFERENT) == bool(expected)


def test_given_a_record_that_somebody_adds_when_verified_then_it_is_found_until_it_is_gone(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    route = thirds(mirrored.name)
    flow.run(runner=TransformHere(route=route))
    before = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)
    copy = consume(mirrored.target, f"{mirrored.name}-two")
    produce(mirrored.target, f"{mirrored.name}-two", [replace(copy[0], partition=1)])

    recent = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)
    again = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)

    assert before.exit_code == 0
    for report in (recent, again):
        assert report.exit_code == 3, report.to_dict()
        found = of(report, f"{mirrored.name}-two", 1)
        assert [(each.kind, each.target_offset) for each in found.differences] == [(DifferenceKind.EXTRA, 100)]


@pytest.mark.parametrize("dies_after", [1, 250])
def test_given_a_run_that_died_when_the_next_one_has_taken_over_then_all_is_equal(
    flow: Flow, topic_name: str, dies_after: int
) -> None:
    route = thirds(topic_name)
    once = TransformHere(route=route, rows_at_once=50)
    with pytest.raises(Killed):
        flow.run(runner=replace(once, dies_after=dies_after))
    flow.run(runner=once)

    report = verify_transformed(flow, route=route)

    assert report.exit_code == 0, report.to_dict()
    assert sum(each.records for each in report.routed) == 600


def test_given_records_that_change_their_partition_when_verified_then_own_and_sent_ones_are_equal(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create([*records(400), *records(300, partition=1)], partitions=2)
    flow = mirrored.flow(settings(mirrored.name, "partition"))

    def route(value: bytes | None) -> tuple[str | None, int | None]:
        return None, number_of(value) % 2

    flow.run(runner=TransformHere(route=route), tasks_max=1)
    equal = verify_transformed(flow, route=route)
    mirrored.produce_remote([Record(value=b"value-1-!", partition=1)])
    added = verify_transformed(flow, route=route)
    change(mirrored.pair, mirrored.remote, lambda copy: copy[:-1])
    different = verify_transformed(flow, route=route)

    assert equal.exit_code == 0, equal.to_dict()
    assert sum(each.records for each in equal.routed) == 700
    # Behind what the flow has written others may stand, for the partition is not only of those that are sent there.
    assert added.exit_code == 0, added.to_dict()
    assert different.exit_code == 3
    assert of(different, mirrored.remote).difference_count == 1


def test_given_all_records_elsewhere_when_verified_then_they_are_compared_without_a_map(
    flow: Flow, mirrored: MirroredTopic
) -> None:
    def route(_: bytes | None) -> tuple[str | None, int | None]:
        return f"{mirrored.name}-one", None

    flow.run(runner=TransformHere(route=route))
    equal = verify_transformed(flow, route=route)
    change(mirrored.pair, f"{mirrored.name}-one", lambda copy: copy[1:])
    different = verify_transformed(flow, route=route)

    assert equal.exit_code == 0, equal.to_dict()
    assert {each.records for each in equal.routed} == {600, 300}
    (difference,) = of(different, f"{mirrored.name}-one").differences
    assert (difference.kind, difference.source_offset) == (DifferenceKind.MISSING, 0)


def test_given_a_budget_or_no_spark_when_not_all_is_read_then_what_was_sent_is_not_said_to_be_equal(
    flow: Flow, topic_name: str
) -> None:
    route = thirds(topic_name)
    flow.run(runner=TransformHere(route=route))

    cut = verify_transformed(flow, route=route, budget=Budget(max_bytes=2_000), mode=VerifyMode.RECENT)
    sample = verify_transformed(flow, route=route, mode=VerifyMode.SAMPLE)
    rest = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)
    without_spark = verify(flow)
    arguments = ["verify", "--config", str(flow.path), "--flow", "A->B"]
    shown = CliRunner().invoke(app, arguments)
    told = CliRunner().invoke(app, [*arguments, "--json"])

    assert {each.reason for each in cut.routed} == {"budget"}
    assert {each.reason for each in sample.routed} == {"sample"}
    assert (cut.exit_code, sample.exit_code, rest.exit_code) == (1, 1, 0), rest.to_dict()
    assert sum(each.records for each in rest.routed) == 600
    assert {each.reason for each in without_spark.routed} == {"needs-spark"}
    assert (without_spark.exit_code, shown.exit_code, told.exit_code) == (1, 1, 1)
    assert "routed verdicts" in shown.output
    places = {(row["topic"], row["partition"], row["verdict"]) for row in json.loads(told.stdout)["routed"]}
    assert places == {(f"{topic_name}-{name}", at, "unverifiable") for name in ("one", "two") for at in (0, 1)}


def test_given_topics_with_different_transforms_that_meet_in_one_when_verified_then_they_are_compared_together(
    mirrored: MirroredTopic,
) -> None:
    topics = f"{mirrored.name}-a", f"{mirrored.name}-b"
    for topic in topics:
        create_topic(mirrored.source, topic)
        produce(mirrored.source, topic, records(300))
    both = settings(topics[0])
    both |= {"A->B.mirror.transforms": "any, other", "A->B.mirror.transform.other.topics": topics[1]}
    both |= {"A->B.mirror.transform.other.topic": "'1'"}
    flow = mirrored.flow(topics=", ".join(topics), settings=both)
    route = to_one_partition(mirrored.name)
    flow.run(runner=TransformHere(route=route), tasks_max=1)

    equal = verify_transformed(flow, route=route)
    one = verify_transformed(flow, route=route, topics=(topics[0],))

    assert equal.exit_code == 0, equal.to_dict()
    (found,) = equal.routed
    assert (found.records, found.sources) == (300, tuple(TopicPartition(topic, 0) for topic in topics))
    # What one of them alone has sent there cannot be told from what stands there.
    assert [(each.verdict, each.reason) for each in one.routed] == [(Verdict.UNVERIFIABLE, "source-not-verified")]
    assert [each.verdict for each in one.verdicts] == [Verdict.EQUAL]


@pytest.fixture
def every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions end as often as they can: of a run that dies some are committed, and one is not."""
    monkeypatch.setattr(writing, "TRANSACTION_SECONDS", 0.0)


def in_transactions(mirrored: MirroredTopic, column: str = "topic") -> Flow:
    mirrored.create([*records(600), *records(300, partition=1)], partitions=2)
    enabled = {**settings(mirrored.name, column), "B.exactly.once.source.support": "enabled"}
    return mirrored.flow(enabled)


@pytest.mark.usefixtures("every_batch")
def test_given_a_run_in_transactions_that_died_when_the_next_one_has_gone_on_then_all_is_equal(
    mirrored: MirroredTopic,
) -> None:
    flow, route = in_transactions(mirrored), thirds(mirrored.name)
    runner = TransformHere(route=route, rows_at_once=33)
    flow.run(runner=runner)
    before = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)
    mirrored.produce([*records(600, start=600), *records(300, partition=1, start=300)])
    with pytest.raises(Killed):
        flow.run(runner=replace(runner, dies_after=160))
    meanwhile = verify_transformed(flow, route=route)
    flow.run(runner=runner)

    report = verify_transformed(flow, route=route)
    recent = verify_transformed(flow, route=route, mode=VerifyMode.RECENT)

    # What the dead run has committed is left to the next verification.
    assert (before.exit_code, meanwhile.exit_code) == (0, 0), meanwhile.to_dict()
    assert sum(each.records for each in meanwhile.routed) == 600
    assert (report.exit_code, recent.exit_code) == (0, 0), report.to_dict()
    assert sum(each.records for each in report.routed) == 1200
