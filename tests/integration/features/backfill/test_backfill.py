"""Backfills on brokers: bounded, repeatable, and beside a flow that knows nothing of them or waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mirror_lib.config.model import FirstStart
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.errors import ConfigurationError, FencedError
from mirror_lib.features.backfill.define import prepare_backfill, request_of
from mirror_lib.features.backfill.plan import BackfillEstimate
from mirror_lib.features.backfill.run import run_backfill
from mirror_lib.features.backfill.tables import Backfills
from mirror_lib.features.repair.set_positions import apply_changes, plan_changes
from mirror_lib.features.verify.findings import Verdict
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.flows import Flow, copy_here
from tests.support.interruptions import DriverKilledError, claimed
from tests.support.kafka import Record, consume, create_topic, records, transaction, values, watermarks
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify

Runner = Callable[[CopyJob], list[PartitionResult]]


def prepare(
    flow: Flow, topics: str, begin: str = "earliest", end: str = "latest", *, name: str | None = None, **where: str
) -> BackfillEstimate:
    request = request_of(flow.config, [topics], begin, end, into_same=not where, **where)
    with FlowClusters.connect(flow.config) as clusters:
        return prepare_backfill(flow.config, clusters, flow.ledger, request, name)[0]


def run(
    flow: Flow, name: str, *, runner: Runner = copy_here, max_bytes: int | None = None, **options: Any
) -> RunReport:
    return run_backfill(
        flow.config,
        name,
        ledger=flow.ledger,
        make_runner=lambda: runner,
        options=RunOptions(**options),
        max_bytes=max_bytes,
    )


def backfill(flow: Flow, topics: str, begin: str = "earliest", end: str = "latest", **where: str) -> RunReport:
    return run(flow, prepare(flow, topics, begin, end, **where).backfill.name)


def numbers(found: list[Record], partition: int = 0) -> list[int]:
    return [int((each.key or b"").removeprefix(b"key-")) for each in found if each.partition == partition]


def test_a_range_goes_into_another_topic_and_the_flow_does_not_notice(mirrored: MirroredTopic) -> None:
    written = mirrored.create([*records(100), *records(50, partition=1)], partitions=2)
    flow = mirrored.flow()
    flow.run()
    before = flow.position(mirrored.name), flow.ledger.segments("A->B", mirrored.name, 0)

    found = prepare(flow, mirrored.name, "offset 10", "offset 60", name="history", into_suffix=".backfill")
    report = run(flow, "history")

    assert report.errors == ()
    assert report.records == found.offsets == 50 + 40
    copied = consume(mirrored.target, f"A.{mirrored.name}.backfill")
    assert values(copied) == [r.value for r in written if r.offset is not None and 10 <= r.offset < 60]
    assert (flow.position(mirrored.name), flow.ledger.segments("A->B", mirrored.name, 0)) == before
    # It has an account of its own.
    assert len(flow.ledger.runs("A->B")) == 1
    assert [each.state for each in flow.ledger.runs("A->B#backfill-history")] == ["succeeded"]
    assert sum(each.records for each in flow.ledger.segments("A->B#backfill-history", mirrored.name, 0)) == 50
    mirrored.produce(records(5, start=100))
    after = flow.run()
    assert (after.records, after.errors) == (5, ())
    assert numbers(mirrored.copied()) == list(range(105))


def test_a_repeated_backfill_copies_nothing_twice_although_the_source_has_grown(mirrored: MirroredTopic) -> None:
    mirrored.create(records(30))
    flow = mirrored.flow()
    first = prepare(flow, mirrored.name, into_suffix=".old")
    run(flow, first.backfill.name)
    mirrored.produce(records(30, start=30))

    again = prepare(flow, mirrored.name, into_suffix=".old")
    report = run(flow, again.backfill.name)

    assert again.backfill == first.backfill
    assert again.offsets == 0
    assert (report.records, report.errors) == (0, ())
    assert numbers(consume(mirrored.target, f"A.{mirrored.name}.old")) == list(range(30))


def test_a_time_is_the_first_record_that_is_not_older_also_if_timestamps_do_not_ascend(mirrored: MirroredTopic) -> None:
    mirrored.create()
    at = 1_704_067_200_000
    seconds = (0, 5, 1, 5, 9, 2)
    written = [Record(value=b"%d" % each, timestamp_ms=at + each * 1000) for each in seconds]
    mirrored.produce(written)
    flow = mirrored.flow()

    # By ListOffsets the record of second 5 is the first one for both times, though later ones are between them.
    with pytest.raises(ConfigurationError, match="is empty") as refused:
        prepare(flow, mirrored.name, "2024-01-01T00:00:01Z", "2024-01-01T00:00:05Z", into_suffix=".none")
    report = backfill(flow, mirrored.name, "2024-01-01T00:00:01Z", "2024-01-01T00:00:09Z", into_suffix=".some")

    assert "no record" not in str(refused.value)
    assert "if timestamps do not ascend, use offsets" in refused.value.action
    assert report.errors == ()
    assert values(consume(mirrored.target, f"A.{mirrored.name}.some")) == [b"5", b"1", b"5"]


def test_history_goes_into_the_topic_of_a_flow_that_goes_on_before_and_after(mirrored: MirroredTopic) -> None:
    # Given a flow that began late, and input that never stops
    mirrored.create(records(50))
    flow = mirrored.flow({"mirror.first.start": "latest"})
    flow.run()
    mirrored.produce(records(10, start=50))
    flow.run()
    name = prepare(flow, mirrored.name, "earliest", "offset 50", name="history").backfill.name

    # When the history is filled in by several runs, between runs of the flow
    done: list[RunReport] = []
    start = 60
    while not done or done[-1].records:
        done.append(run(flow, name, max_bytes=2_500))
        mirrored.produce(records(10, start=start))
        live = flow.run()
        assert (live.records, live.errors) == (10, ())
        start += 10

    # Then both are complete, each in its order, and the flow's map knows its own records alone
    assert len(done) > 2
    assert all(report.errors == () for report in done)
    copied = numbers(mirrored.copied())
    assert [number for number in copied if number < 50] == list(range(50))
    assert [number for number in copied if number >= 50] == list(range(50, start))
    segments = flow.ledger.segments("A->B", mirrored.name, 0)
    assert sum(each.records for each in segments) == start - 50
    assert min(each.source_first for each in segments) == 50
    # The verification of the flow takes the backfill's records for what they are.
    assert [verdict.verdict for verdict in verify(flow).verdicts] == [Verdict.EQUAL]
    assert flow.position(mirrored.name).backfill is None
    assert flow.position(mirrored.name).target_offset == watermarks(mirrored.target, mirrored.remote)[1]


@pytest.mark.parametrize(
    ("dies_in", "left"),
    [
        ("copy.run.open_partitions", 5),
        # Before it closed the flow's position.
        ("features.backfill.same_topic.LivePositions.settle", 0),
    ],
)
def test_given_a_backfill_that_died_before_it_wrote_or_ended_when_it_is_repeated_then_the_flow_has_its_topic_back(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch, dies_in: str, left: int
) -> None:
    mirrored.create(records(10))
    flow = mirrored.flow()
    flow.run()
    name = prepare(flow, mirrored.name, "offset 0", "offset 5", name="again").backfill.name

    def die(*_: object, **__: object) -> None:
        raise DriverKilledError

    with monkeypatch.context() as patched:
        # A process that is killed tidies nothing up.
        for each in (dies_in, "features.backfill.same_topic.LivePositions.settle"):
            patched.setattr(f"mirror_lib.{each}", die)
        with pytest.raises(DriverKilledError):
            run(flow, name)
    assert flow.position(mirrored.name).backfill == "again"

    report = run(flow, name)

    assert (report.records, report.errors) == (left, ())
    mirrored.produce(records(2, start=10))
    live = flow.run()
    assert (live.records, live.errors) == (2, ())
    assert numbers(mirrored.copied()) == [*range(10), *range(5), 10, 11]


def test_given_a_backfill_that_was_given_up_when_it_wakes_up_then_the_broker_refuses_it(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(10))
    flow = mirrored.flow()
    flow.run()
    name = prepare(flow, mirrored.name, "offset 0", "offset 5", name="asleep").backfill.name
    asleep: list[CopyJob] = []

    def sleep(job: CopyJob) -> list[PartitionResult]:
        asleep.append(job)
        raise DriverKilledError

    with pytest.raises(DriverKilledError):
        run(flow, name, runner=sleep)
    with FlowClusters.connect(flow.config) as clusters:
        changes = plan_changes(flow.config, clusters, mirrored.name, (), FirstStart(offset=10), run_id="person")
        apply_changes(flow.config, clusters, flow.ledger, changes, by="person", run_id="person")

    (woken,) = copy_here(claimed(asleep[0], seconds_ago=0))
    mirrored.produce(records(2, start=10))
    live = flow.run()

    assert isinstance(woken.error, FencedError)
    assert (live.records, live.errors) == (2, ())
    assert numbers(mirrored.copied()) == [*range(12)]


def test_transactions_and_markers_of_the_source_are_no_hindrance(mirrored: MirroredTopic) -> None:
    mirrored.create()
    transaction(mirrored.source, mirrored.name, [b"a", b"b"], commit=True)
    transaction(mirrored.source, mirrored.name, [b"c"], commit=False)
    transaction(mirrored.source, mirrored.name, [b"d"], commit=True)
    flow = mirrored.flow({"A->B.consumer.isolation.level": "read_committed"})
    flow.run()

    report = backfill(flow, mirrored.name)

    assert report.errors == ()
    assert values(mirrored.copied()) == [b"a", b"b", b"d"] * 2
    assert flow.run().errors == ()


def test_a_topic_that_the_flow_fills_from_another_one_is_no_target(mirrored: MirroredTopic) -> None:
    other = f"{mirrored.name}-other"
    for topic in (mirrored.name, other):
        create_topic(mirrored.source, topic)
    flow = mirrored.flow(topics=f"{mirrored.name},{other}")

    with pytest.raises(ConfigurationError, match="cannot be copied into"):
        prepare(flow, mirrored.name, into=f"A.{other}")


def test_a_range_in_which_the_log_has_no_record_is_refused_and_an_empty_log_is_not(mirrored: MirroredTopic) -> None:
    mirrored.create()
    flow = mirrored.flow()
    assert prepare(flow, mirrored.name, "offset 9", name="empty", into_suffix=".old").backfill.ranges == ()
    mirrored.produce(records(5))

    for begin, end in (("offset 9", "latest"), ("2999-01-01", "offset 3"), ("offset 4", "2001-01-01")):
        with pytest.raises(ConfigurationError, match=rf"{mirrored.name}-0 0 to 5") as refused:
            prepare(flow, mirrored.name, begin, end, name="none", into_suffix=".old")
        assert "The backfill was not defined" in refused.value.action
    assert Backfills(flow.ledger).find("A->B", "none") is None
