"""Committing a round: what was copied is in the ledger even where Kafka refuses what is to be told about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

import mirror_lib.relay.commit.commit as commit
from mirror_lib.cluster.topics.positions import Position, PositionState
from mirror_lib.errors import AuthorizationError, MirrorError
from mirror_lib.ledger.offset_rows import PositionRow, SegmentRow
from mirror_lib.ledger.rows import GapRow, PartitionRunRow
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.relay.commit.commit import closed_positions, commit_round, segment_rows
from mirror_lib.relay.model import OpenPartition, PartitionPlan, PartitionResult, Poison
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.fake_cluster import job
from tests.support.brokers.partitions import partition_result


class Ledger:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.positions: list[PositionRow] = []
        self.segments: list[SegmentRow] = []
        self.runs: list[PartitionRunRow] = []
        self.gaps: list[GapRow] = []

    def save_positions(self, rows: Iterable[PositionRow]) -> None:
        self.positions += rows

    def append_segments(self, rows: Iterable[SegmentRow]) -> None:
        self.segments += rows

    def record_gap(self, row: GapRow) -> None:
        self.gaps.append(row)

    def save_partition_runs(self, rows: Iterable[PartitionRunRow]) -> None:
        self.runs += rows


def opened(topic: str, *, target: str = "A.orders") -> OpenPartition:
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
    ledger, partition = Ledger(), opened("orders")

    with pytest.raises(AuthorizationError):
        commit_round(flow, job(partition), [result(partition)], clusters, ledger, round_number=1)  # type: ignore[arg-type]

    assert [(position.offset, position.state) for position in written] == [(19, PositionState.CLOSED)]
    assert [(row.offset, row.target_offset) for row in ledger.positions] == [(19, 15)]
    assert [(row.source_first, row.records) for row in ledger.segments] == [(10, 10)]
    assert [row.state for row in ledger.runs] == ["done"]


def test_what_a_policy_left_out_is_in_the_gap_ledger() -> None:
    clusters = SimpleNamespace(positions=SimpleNamespace(write=list))
    flow = SimpleNamespace(flow=FlowId("A", "B"), emit_offset_syncs_enabled=False)
    ledger, partition = Ledger(), opened("orders")
    poison = Poison(12, 14, 2, "record-too-large", "it is too large.")
    skipping = job(partition, poison_policy="skip")

    commit_round(flow, skipping, [replace(result(partition), poison=(poison,))], clusters, ledger, round_number=1)  # type: ignore[arg-type]

    (gap,) = ledger.gaps
    assert (gap.topic, gap.first_offset, gap.next_offset, gap.cause) == ("orders", 12, 14, "record-too-large")
    assert (gap.state, gap.decided_by) == ("accepted", "policy skip")


def test_a_position_that_is_refused_stays_open_in_the_ledger_too() -> None:
    def refuse(_: object) -> None:
        raise MirrorError("no.")

    clusters = SimpleNamespace(positions=SimpleNamespace(write=refuse))
    flow = SimpleNamespace(flow=FlowId("A", "B"), emit_offset_syncs_enabled=False)
    ledger, partition = Ledger(), opened("orders")

    with pytest.raises(MirrorError):
        commit_round(flow, job(partition), [result(partition)], clusters, ledger, round_number=1)  # type: ignore[arg-type]

    assert ledger.positions == []
    assert [row.records for row in ledger.segments] == [10]
    assert [row.records for row in ledger.runs] == [10]


def test_an_uncertain_end_leaves_all_of_a_merge_open() -> None:
    first, second, other = opened("first", target="m"), opened("second", target="m"), opened("other")
    results = [result(first), result(second, certain=False, target_next=12), result(other)]

    positions = closed_positions({each.plan.source: each for each in (first, second, other)}, results, "run")

    assert [position.topic for position in positions] == ["other"]


def test_a_merge_closes_with_the_end_of_its_last_writer() -> None:
    first, second = opened("first", target="m"), opened("second", target="m")

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
