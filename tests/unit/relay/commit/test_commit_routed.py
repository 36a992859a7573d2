"""Committing a round of transforms that choose where records go: the ledger is told where they stand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from mirror_lib.ledger.offset_rows import RoutedRangeRow
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.relay.commit.commit import routed_rows
from mirror_lib.relay.model import OpenPartition, PartitionPlan, PartitionResult, RoutedRecords
from mirror_lib.topology.names import FlowId, TopicPartition
from mirror_lib.transform.model import ColumnExpressions, Transform, TransformChain
from tests.support.brokers.fake_cluster import job
from tests.support.brokers.partitions import partition_result

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


def test_of_transforms_that_choose_no_place_and_of_raw_copies_nothing_is_noted() -> None:
    assert rows(replace(RESULT, routed=()), FILTER) == rows(replace(RESULT, routed=()), None) == []


def test_of_an_end_that_is_not_certain_nothing_is_noted() -> None:
    assert rows(replace(RESULT, certain=False), AWAY) == []


def test_of_a_partition_that_did_not_get_on_nothing_is_noted() -> None:
    assert rows(replace(RESULT, source_next=10), AWAY) == []


def test_what_an_attempt_before_has_committed_in_transactions_belongs_to_it() -> None:
    """The last attempt has begun behind it, and knows where the records stand that stayed."""
    resumed = replace(RESULT, start=14, target_first=7, runs=(OffsetRun(11, 5, 2), OffsetRun(15, 7, 2)))

    own, there = rows(resumed, AWAY)

    assert {(each.source_first, each.source_next) for each in (own, there)} == {(10, 18)}
    assert (own.target_first, own.target_next) == (5, 9)
