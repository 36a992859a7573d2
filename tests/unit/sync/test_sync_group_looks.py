"""Which logs a step for groups compares before it changes something."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.offsets.sync_store import OffsetSyncStore
from mirror_lib.records.last_records import LastRecord
from mirror_lib.sync.groups.changed_logs import MOST_DUE_BYTES, LookScope, choose_logs
from mirror_lib.sync.groups.facts import GroupFacts
from mirror_lib.sync.groups.model import GroupPlan, GroupRow
from mirror_lib.topology.names import FlowId, TopicPartition

BATCH = MOST_DUE_BYTES // 20


def place(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def looked_at(
    count: int, *, run_id: str = "old", due: int | None = None, end: int = 10
) -> tuple[GroupFacts, GroupPlan]:
    """A plan with changes in the first partitions, each with a batch on both sides."""
    record = LastRecord(9, BATCH, 1)
    positions = {
        place(n): Position("orders", n, 9, 10, run_id=run_id, last_record=record, target_record=record)
        for n in range(count)
    }
    rows = tuple(
        GroupRow(
            "g", place(n), TopicPartition("A.orders", n), 5, translated=True, emit=n < (count if due is None else due)
        )
        for n in range(count)
    )
    facts = GroupFacts(
        {},
        OffsetSyncStore(),
        {},
        positions=positions,
        source_starts=dict.fromkeys(positions, 0),
        source_ends=dict.fromkeys(positions, end),
        target_ends=dict.fromkeys(positions, end),
    )
    return facts, GroupPlan(FlowId("A", "B"), rows)


def test_a_command_compares_all_partitions_that_it_changes() -> None:
    chosen = choose_logs(*looked_at(25), LookScope())

    assert set(chosen.now) == {place(number) for number in range(25)}
    assert chosen.later == frozenset()


def test_a_scheduled_step_compares_a_part_in_turn_and_leaves_the_others_as_they_are() -> None:
    facts, plan = looked_at(25)
    seen = [choose_logs(facts, plan, LookScope(turn=lambda turn=turn: turn)) for turn in range(3)]

    assert sorted(each for chosen in seen for each in chosen.now) == [place(number) for number in range(25)]
    assert all(len(chosen.now) <= 10 and chosen.later.isdisjoint(chosen.now) for chosen in seen)
    waits = plan.postponed(seen[0].later)
    assert {row.source for row in waits.rows if row.emit} == set(seen[0].now)
    assert {row.reason for row in waits.rows if not row.emit} == {GroupReason.PENDING}
    assert "group offsets on 15 partitions are written by later runs" in waits.notices[0]


def test_what_the_run_before_has_copied_is_known_unless_a_log_ends_earlier_now() -> None:
    scope = LookScope("new", lambda: 0)
    chosen = choose_logs(*looked_at(25, run_id="new"), scope)
    assert len(chosen.now) == 25
    # Ends and leader epochs are compared without a fetch.
    assert {(each.position.last_record, each.position.target_record) for each in chosen.now.values()} == {(None, None)}

    facts, plan = looked_at(3, run_id="new", due=2)
    shorter = replace(facts, target_ends={**facts.target_ends, place(1): 9})
    chosen = choose_logs(shorter, plan, scope)
    assert {each: ends.position.last_record is None for each, ends in chosen.now.items()} == {
        place(0): True,
        place(1): False,
    }
