"""What the steps beside the copy leave for those who watch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.sync.groups.model import GroupFinding, GroupPlan, GroupRow
from mirror_lib.sync.heartbeats.rules import HeartbeatState, UpstreamHeartbeat
from mirror_lib.sync.intervals import Interval, is_due_again
from mirror_lib.sync.observed import (
    WHOLE_GROUP,
    group_rows,
    heartbeat_rows,
    save_groups,
    save_heartbeats,
    save_step,
    step_row,
)
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.ledger.ledgers import ready_ledger

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FLOW = FlowId("A", "B")


@pytest.fixture
def ledger(tmp_path: Path):
    with ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        yield ledger


def row(group: str, number: int = 0, **values: object) -> GroupRow:
    return GroupRow(group, TopicPartition("orders", number), TopicPartition("A.orders", number), **values)


def test_a_group_is_kept_with_where_it_stands_and_why_it_does_not_follow() -> None:
    stands = {"upstream": 7, "exact": 6, "target_committed": 5, "duplicates": 2, "skipped": 3}
    plan = GroupPlan(FLOW, (row("x", **stands, reason=GroupReason.REFUSED, what="no"),))

    (kept,) = group_rows(plan, NOON, applied=True)

    assert (kept.flow, kept.group, kept.topic, kept.partition, kept.target_topic) == (
        "A->B", "x", "orders", 0, "A.orders",
    )  # fmt: skip
    assert (kept.upstream, kept.target_offset, kept.target_committed, kept.duplicates, kept.skipped) == (7, 6, 5, 2, 3)
    assert (kept.reason, kept.what, kept.observed_at) == ("refused", "no", NOON)


def test_what_a_dry_run_would_do_is_still_to_do() -> None:
    plan = GroupPlan(FLOW, (row("x", exact=6, commit=True), row("y")))

    assert [each.reason for each in group_rows(plan, NOON, applied=False)] == ["pending", None]
    assert [each.reason for each in group_rows(plan, NOON, applied=True)] == [None, None]


def test_a_group_that_is_left_out_as_a_whole_has_one_row() -> None:
    plan = GroupPlan(FLOW, findings=(GroupFinding("s", GroupReason.GROUP_KIND_NOT_SUPPORTED, "it is a share group"),))

    (kept,) = group_rows(plan, NOON, applied=True)

    assert (kept.group, kept.topic, kept.partition, kept.reason) == ("s", "", WHOLE_GROUP, "group-kind-not-supported")


def test_where_there_are_too_many_rows_every_group_and_all_that_is_wrong_stay() -> None:
    rows = [row(group, number) for group in ("x", "y") for number in range(3)]
    rows += [row("z", 0), row("z", 1, reason=GroupReason.REFUSED)]

    kept = group_rows(GroupPlan(FLOW, tuple(rows)), NOON, applied=True, limit=5)

    assert [(each.group, each.reason) for each in kept] == [("z", "refused"), ("x", None), ("y", None)]
    assert len(group_rows(GroupPlan(FLOW, tuple(rows)), NOON, applied=True, limit=2)) == 2


def test_a_row_is_kept_for_each_cluster_upstream() -> None:
    upstreams = (
        UpstreamHeartbeat("A", 1, HeartbeatState.FRESH, newest_ms=int(NOON.timestamp() * 1000)),
        UpstreamHeartbeat("C", None, HeartbeatState.MISSING, problem="none came."),
        # A producer's own, beyond the calendar.
        UpstreamHeartbeat("D", 2, HeartbeatState.CLOCK_AHEAD, newest_ms=2**63 - 1, problem="ahead."),
    )

    kept = heartbeat_rows(FLOW, upstreams, NOON)

    assert [(each.pair, each.verdict, each.emitted_at, each.detail) for each in kept] == [
        ("A->B", "fresh", NOON, None),
        ("C->B", "missing", None, "none came."),
        ("D->B", "clock-ahead", None, "ahead."),
    ]


def test_what_a_step_found_to_differ_is_counted() -> None:
    steps: list[tuple[dict[str, object], int]] = [
        ({"changed": 3, "unchanged": 9, "failed": 2}, 5),
        ({"created": 4, "unchanged": 9, "failed": 0}, 4),
        ({"reasons": {"in-sync": 9, "refused": 1, "between-syncs": 2, "topic-not-replicated": 7}, "failed": 1}, 3),
        ({"reasons": {"fresh": 2, "stale": 1}, "failed": 0}, 1),
    ]
    for done, differences in steps:
        kept = step_row("A->B", "some_step", {"skipped": None, "problems": [], **done}, NOON)
        assert (kept.differences, kept.failed, kept.skipped) == (differences, done["failed"], None)
        assert kept.summary["problems"] == []


def test_a_step_that_is_not_due_leaves_what_it_found_the_last_time(ledger: Ledger) -> None:
    why_not = Interval("k.enabled", True, "k.interval.seconds", 600).why_not(NOON, NOON + timedelta(seconds=9))
    found = {"skipped": None, "problems": [], "failed": 1, "changed": 2}

    save_step(ledger, "A->B", "sync_topic_configs", found)
    save_step(ledger, "A->B", "sync_topic_configs", {**found, "skipped": why_not, "failed": 0, "changed": 0})

    (kept,) = ledger.observations.steps("A->B")
    assert (kept.differences, kept.skipped) == (3, None)


def test_a_step_that_was_switched_off_has_found_nothing(ledger: Ledger) -> None:
    why_not = Interval("k.enabled", False, "k.interval.seconds", 600).why_not(NOON, NOON)
    assert why_not is not None
    assert not is_due_again(why_not)

    save_step(ledger, "A->B", "s", {"skipped": None, "problems": [], "failed": 1, "changed": 2})
    save_step(ledger, "A->B", "s", {"skipped": why_not, "problems": [], "failed": 0, "changed": 0})

    (kept,) = ledger.observations.steps("A->B")
    assert (kept.differences, kept.skipped) == (0, "k.enabled is false")


def test_a_ledger_that_fails_holds_nothing_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    without_tables = Ledger.open(f"sqlite:///{tmp_path}/empty.sqlite3")

    save_groups(without_tables, GroupPlan(FLOW, (row("x"),)), applied=True)
    save_heartbeats(without_tables, FLOW, ())
    save_step(without_tables, "A->B", "s", {"skipped": None, "problems": [], "failed": 0})

    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert all("cannot be stored" in record.getMessage() for record in caplog.records)
