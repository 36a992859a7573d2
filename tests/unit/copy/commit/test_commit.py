"""Committing a round: what was copied is in the ledger even where Kafka refuses what is to be told about it.

Progress is a courtesy: a ledger or a cluster that does not answer must not end a round whose positions are open.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

import mirror_lib.copy.commit.commit as commit
import mirror_lib.copy.commit.progress as progress
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.copy.commit.commit import closed_positions, commit_round, segment_rows
from mirror_lib.copy.commit.progress import RoundProgress
from mirror_lib.copy.commit.transaction_counts import counts_after_decisions
from mirror_lib.errors import AuthorizationError, LedgerError, MirrorError
from mirror_lib.features.transforms.model import ColumnExpressions, Transform, TransformChain
from mirror_lib.features.transforms.route_rows import routed_rows
from mirror_lib.features.transforms.tables import RoutedRangeRow
from mirror_lib.ledger.offset_rows import PositionRow, SegmentRow
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.planning.model import OpenPartition, PartitionPlan, PartitionResult, RoutedRecords
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.fake_cluster import FakeCluster, fill, job, opened
from tests.support.brokers.partitions import partition_result
from tests.support.ledger.rows import transaction_count


class Ledger:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.positions: list[PositionRow] = []
        self.segments: list[SegmentRow] = []
        self.runs: list[PartitionRunRow] = []

    def commit_positions(self, rows: Iterable[PositionRow]) -> None:
        self.positions += rows

    def append_segments(self, rows: Iterable[SegmentRow]) -> None:
        self.segments += rows

    def save_partition_runs(self, rows: Iterable[PartitionRunRow]) -> None:
        self.runs += rows


def claimed(topic: str, *, target: str = "A.orders") -> OpenPartition:
    source, remote = TopicPartition(topic, 0), TopicPartition(target, 0)
    return OpenPartition(PartitionPlan(source, remote, 10, 20, "id", 1_000_000, 0), "id", 1, 0, 5)


def result(partition: OpenPartition, *, certain: bool = True, target_next: int = 15) -> PartitionResult:
    count = target_next - 5
    return partition_result(
        partition.plan,
        source_next=10 + count,
        target_first=5,
        target_next=target_next,
        records=count,
        runs=(OffsetRun(10, 5, count),),
        certain=certain,
    )


def test_an_offset_sync_that_is_refused_costs_no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AuthorizationError("the source cluster refuses to be written.")

    monkeypatch.setattr(commit, "_write_offset_syncs", refused)
    written: list[Position] = []
    clusters = SimpleNamespace(positions=SimpleNamespace(write=written.extend))
    flow = SimpleNamespace(flow=FlowId("A", "B"), emit_offset_syncs_enabled=True)
    ledger, partition = Ledger(), claimed("orders")

    with pytest.raises(AuthorizationError):
        commit_round(flow, job(partition), [result(partition)], clusters, ledger, round_number=1)  # type: ignore[arg-type]

    assert [(position.offset, position.state) for position in written] == [(19, PositionState.CLOSED)]
    assert [(row.offset, row.target_offset) for row in ledger.positions] == [(19, 15)]
    assert [(row.source_first, row.records) for row in ledger.segments] == [(10, 10)]
    assert [row.state for row in ledger.runs] == ["done"]


def test_given_positions_that_kafka_refuses_then_the_ledger_has_what_was_copied() -> None:
    # Some of them may have been accepted: their state in the ledger is that of both cases.
    def refuse(_: object) -> None:
        raise MirrorError("no.")

    clusters = SimpleNamespace(positions=SimpleNamespace(write=refuse))
    flow = SimpleNamespace(flow=FlowId("A", "B"), emit_offset_syncs_enabled=False)
    ledger, partition = Ledger(), claimed("orders")

    with pytest.raises(MirrorError):
        commit_round(flow, job(partition), [result(partition)], clusters, ledger, round_number=1)  # type: ignore[arg-type]

    assert [(row.state, row.offset) for row in ledger.positions] == [("closed", 19)]
    assert [row.records for row in ledger.segments] == [10]
    assert [row.records for row in ledger.runs] == [10]


def test_an_uncertain_end_leaves_all_of_a_merge_open() -> None:
    first, second, other = claimed("first", target="m"), claimed("second", target="m"), claimed("other")
    results = [result(first), result(second, certain=False, target_next=12), result(other)]

    positions = closed_positions({each.plan.source: each for each in (first, second, other)}, results, "run")

    assert [position.topic for position in positions] == ["other"]


def test_a_merge_closes_with_the_end_of_its_last_writer() -> None:
    first, second = claimed("first", target="m"), claimed("second", target="m")

    positions = closed_positions(
        {each.plan.source: each for each in (first, second)}, [result(first), result(second, target_next=18)], "run"
    )

    assert [(position.offset, position.target_offset) for position in positions] == [(19, 18), (22, 18)]


def test_a_run_of_a_topic_full_of_holes_takes_several_rows_that_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "_RUNS_PER_ROW", 2)
    runs = tuple(OffsetRun(10 + 3 * number, 5 + 2 * number, 2) for number in range(5))
    flow = SimpleNamespace(flow=FlowId("A", "B"))

    found = segment_rows(flow, "run", TopicPartition("orders", 0), runs)  # type: ignore[arg-type]

    assert [row.records for row in found] == [4, 4, 2]
    assert OffsetMap.of_segments(found).columns.runs() == runs


# Committing a round of transforms that choose where records go: the ledger is told where they stand.


SOURCE, OWN, THERE = TopicPartition("orders", 0), TopicPartition("A.orders", 0), TopicPartition("orders.de", 1)
PLAN = PartitionPlan(SOURCE, OWN, 10, 20, "id", 1_000, 0)
FLOW = SimpleNamespace(flow=FlowId("A", "B"))
AWAY = TransformChain((Transform("away", columns=ColumnExpressions(topic="'x'")),))
FILTER = TransformChain((Transform("some", filter="true"),))
RESULT = partition_result(
    PLAN,
    source_next=18,
    target_first=5,
    target_next=9,
    records=7,
    recovered=1,
    routed=(RoutedRecords(THERE, 40, 47, 5),),
)


def rows(result: PartitionResult, chain: TransformChain | None) -> list[RoutedRangeRow]:
    whole = replace(job(), chains={} if chain is None else {"orders": chain})
    return routed_rows(FLOW, whole, OpenPartition(PLAN, None, 1, 0, 5), result)  # type: ignore[arg-type]


def test_every_target_partition_has_a_row_with_the_offsets_of_both_sides() -> None:
    own, there = rows(RESULT, AWAY)

    assert (own.own, there.own) == (True, False)
    assert {(each.flow, each.topic, each.partition, each.source_first, each.source_next) for each in (own, there)} == {
        ("A->B", "orders", 0, 10, 18)
    }
    assert (own.target_topic, own.target_partition, own.target_first, own.target_next) == (*OWN, 5, 9)
    assert (there.target_topic, there.target_partition, there.target_first, there.target_next) == (*THERE, 40, 47)
    # Of the seven that were written and the one that was found again, five went elsewhere.
    assert (own.records, there.records) == (3, 5)


def test_where_nothing_was_sent_elsewhere_then_that_is_noted() -> None:
    (own,) = rows(replace(RESULT, routed=()), AWAY)

    assert (own.own, own.source_first, own.source_next, own.records) == (True, 10, 18, 8)


def test_nothing_is_noted_where_no_place_is_chosen_the_end_is_not_certain_or_nothing_was_copied() -> None:
    for case, changed, chain in (
        ("transforms that choose no place", {"routed": ()}, FILTER),
        ("a raw copy", {"routed": ()}, None),
        ("an end that is not certain", {"certain": False}, AWAY),
        ("a partition that did not get on", {"source_next": 10}, AWAY),
    ):
        assert rows(replace(RESULT, **changed), chain) == [], case


def test_what_an_attempt_before_has_committed_in_transactions_belongs_to_it() -> None:
    """The last attempt has begun behind it, and knows where the records stand that stayed."""
    resumed = replace(RESULT, start=14, target_first=7, runs=(OffsetRun(11, 5, 2), OffsetRun(15, 7, 2)))

    own, there = rows(resumed, AWAY)

    assert {(each.source_first, each.source_next) for each in (own, there)} == {(10, 18)}
    assert (own.target_first, own.target_next) == (5, 9)


def test_a_decision_keeps_the_counts_of_aborted_records_as_long_as_the_target_keeps_the_records() -> None:
    counted = transaction_count(copy="first", counted_to=20, aborted=3, undecided=2, uncounted=1, open=((7, 18, 2),))
    former = Position("orders", 0, 19, 25, target_topic="A.orders", target_topic_id="one", copy="first")
    accepted = replace(former, offset=49, copy="decision")
    (kept,) = counts_after_decisions([counted], [accepted], {former.source: former})
    assert kept == replace(counted, copy="decision", counted_to=50, undecided=0, uncounted=3, open=())

    for lost in (replace(accepted, target_offset=24), replace(accepted, target_topic_id="two")):
        assert list(counts_after_decisions([counted], [lost], {former.source: former})) == []


class Watched:
    """A target's ends as scripted, and the rows that the ledger got."""

    def __init__(self, looks: list[dict[TopicPartition, int]]) -> None:
        self._looks = iter(looks)
        self.saved: list[dict[int, int]] = []
        self.seen_all = threading.Event()

    def list_offsets(self, partitions: list[TopicPartition], _: object) -> dict[TopicPartition, SimpleNamespace]:
        ends = next(self._looks, None)
        if ends is None:
            self.seen_all.set()
            return {each: SimpleNamespace(error=LedgerError("no more looks."), offset=0) for each in partitions}
        return {each: SimpleNamespace(error=None, offset=ends[each]) for each in partitions}

    def save_partition_runs(self, rows: list[PartitionRunRow]) -> None:
        self.saved.append({row.partition: row.records for row in rows})

    def heartbeat(self, _: str) -> None:
        pass


def test_only_partitions_that_have_come_on_are_told_to_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    for partition in (0, 1):
        fill(source.add("orders", partition), [100] * 9)
    first, second = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
    watched = Watched([{first: 3, second: 0}, {first: 3, second: 4}, {first: 3, second: 4}])
    monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0.001)
    copied = job(*(opened(source, target, partition=number) for number in (0, 1)))
    clusters = SimpleNamespace(target_admin=watched)

    with RoundProgress(copied, clusters, watched, round_number=1):  # type: ignore[arg-type]
        assert watched.seen_all.wait(10)

    assert not [each for each in threading.enumerate() if each.name == "round-progress"]
    assert watched.saved[:4] == [{0: 0, 1: 0}, {0: 3, 1: 0}, {1: 4}, {}]


def test_a_ledger_that_fails_does_not_end_the_round(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    fill(source.add("orders"), [100])

    def refuse(*_: object) -> None:
        raise LedgerError("the ledger is locked.")

    monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0.01)
    ledger = SimpleNamespace(save_partition_runs=refuse, heartbeat=refuse)

    with (
        caplog.at_level(logging.WARNING),
        RoundProgress(job(opened(source, target)), SimpleNamespace(), ledger, round_number=1),  # type: ignore[arg-type]
    ):
        pass

    assert "the ledger is locked" in caplog.text
