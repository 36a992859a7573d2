"""The conditions of a cutover, judged on what was read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.admin.groups import CommittedOffset, GroupState
from mirror_lib.errors import attributes_of
from mirror_lib.features.cutover import gates
from mirror_lib.features.cutover.failback.failback import inverse
from mirror_lib.features.cutover.scope import LogEnds, ScopeGroup, ScopeTopic
from mirror_lib.ledger.cutover_rows import CutRow
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.runs import OffsetRun, encode
from mirror_lib.sync.groups.model import GroupPlan, GroupRow
from mirror_lib.topology.names import FlowId, TopicPartition

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ORDERS = TopicPartition("orders", 0)
COPY = TopicPartition("orders-copy", 0)
CUT = CutRow(
    cutover="w", topic="orders", partition=0, target_topic="orders-copy", source_end=10, target_end=7, cut_at=NOON
)
TOPIC = ScopeTopic("orders", "orders-copy", 2, 2)
ROW = GroupRow("billing", ORDERS, COPY, upstream=5, exact=5, duplicates=0, translated=True)


def ends(source: int = 10, target: int = 7, stable: int | None = None) -> LogEnds:
    return LogEnds({ORDERS: source}, {ORDERS: target}, {ORDERS: source if stable is None else stable})


def group(on_source: GroupState = GroupState.EMPTY, offset: int = 10) -> ScopeGroup:
    return ScopeGroup("billing", on_source, GroupState.DEAD, {ORDERS: CommittedOffset(offset, "")})


def plan(*rows: GroupRow) -> GroupPlan:
    return GroupPlan(FlowId("a", "b"), rows)


def test_a_record_on_either_side_breaks_the_cut_until_the_target_may_be_written_to() -> None:
    for source, target, target_too, failed in (
        (10, 7, True, []),
        (11, 7, True, ["no new source records"]),
        (10, 8, True, ["no unexpected records"]),
        (10, 99, False, []),
        (11, 99, False, ["no new source records"]),
    ):
        found = gates.cut_holds([CUT], ends(source, target), target_too=target_too)
        assert [gate.name for gate in found if not gate.passed] == failed, (source, target)


def test_a_partition_that_is_gone_breaks_the_cut() -> None:
    assert not gates.cut_holds([CUT], LogEnds({}, {}, {}), target_too=False)[0].passed


def test_a_source_that_has_other_ends_than_when_the_writers_were_stopped_breaks_the_confirmation() -> None:
    assert gates.source_as_reported({ORDERS: 10}, ends(10)).passed
    for now, what in ((12, "2 offsets were written"), (7, "the source lost 3 offsets")):
        gate = gates.source_as_reported({ORDERS: 10}, ends(now))
        assert (gate.passed, what in gate.what) == (False, True), now


def test_the_inventory_holds_while_topics_and_partitions_of_the_source_are_the_same() -> None:
    assert gates.topics_same([TOPIC], [replace(TOPIC, target_partitions=9)]).passed
    assert not gates.topics_same([replace(TOPIC, target_partitions=0)], [TOPIC]).passed
    assert not gates.topics_same([TOPIC], [replace(TOPIC, partitions=3)]).passed
    assert not gates.topics_same([TOPIC], []).passed
    assert not gates.topics_same([TOPIC], [TOPIC, replace(TOPIC, source="new")]).passed


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_lag_is_what_the_source_has_beyond_the_positions(end: int, position: int, allowed: int) -> None:
    gate = gates.lag_is_small(ends(end), {ORDERS: position}, allowed)

    assert gate.passed is (max(end - position, 0) <= allowed)
    # Without a position it lags by all it holds.
    assert gates.lag_is_small(ends(end), {}, allowed).passed is (end <= allowed)


def test_groups_are_in_place_where_all_offsets_are_and_as_few_records_are_read_again_as_is_allowed() -> None:
    again = replace(ROW, duplicates=5, reason=GroupReason.BETWEEN_SYNCS)
    ahead = replace(ROW, reason=GroupReason.TARGET_AHEAD)
    for row, allowed, in_place, few in (
        (ROW, 0, True, True),
        (replace(ROW, reason=GroupReason.GROUP_ACTIVE_ON_TARGET), 0, False, True),
        (ahead, 0, False, True),
        (replace(ROW, reason=GroupReason.REFUSED), 0, False, True),
        (replace(ROW, reason=GroupReason.UNREADABLE), 0, False, True),
        (again, 4, True, False),
        (again, 5, True, True),
        # Nobody knows how many.
        (replace(ROW, duplicates=None), 100, True, False),
    ):
        placed, reread, *others = gates.groups_in_place(plan(), [row], {"billing"}, allowed)
        assert (placed.passed, reread.passed) == (in_place, few), row
        assert in_place or "billing" in placed.what, row
        assert all(gate.passed for gate in others), row

    # Those that moved first have read on.
    assert gates.groups_in_place(plan(), [ahead], {"billing"}, 0, gone_on=True)[0].passed


def test_groups_may_skip_as_many_records_as_are_allowed() -> None:
    row = replace(ROW, reason=GroupReason.SKIPS_RECORDS, skipped=60)

    placed, _, skipped = gates.groups_in_place(plan(), [row], {"billing"}, 0, 59)

    assert (placed.passed, skipped.passed) == (True, False)
    assert "60 skipped records" in skipped.what
    assert "billing" in skipped.what
    assert "backfill" in skipped.action
    assert all(gate.passed for gate in gates.groups_in_place(plan(), [row], {"billing"}, 0, 60))


def test_only_positions_of_groups_and_topics_that_move_count() -> None:
    elsewhere = replace(ROW, source=TopicPartition("audit", 0))

    found = gates.rows_of_wave(plan(ROW, elsewhere, replace(ROW, group="other")), {"billing"}, [TOPIC])

    assert found == [ROW]


def test_what_will_not_pass_by_itself_is_told_before_the_writers_stop() -> None:
    assert gates.groups_can_move(plan(), [ROW, replace(ROW, reason=GroupReason.BETWEEN_SYNCS)]).passed
    assert not gates.groups_can_move(plan(), [replace(ROW, reason=GroupReason.TARGET_AHEAD)]).passed
    assert not gates.groups_can_move(plan(), [replace(ROW, reason=GroupReason.ROUTED_BY_TRANSFORM)]).passed
    assert not gates.groups_can_move(plan(), [replace(ROW, reason=GroupReason.BEYOND_SOURCE_END)]).passed


def test_the_rehearsal_does_not_pass_what_nobody_will_know_when_the_groups_move() -> None:
    again = replace(ROW, duplicates=5, reason=GroupReason.BETWEEN_SYNCS)
    unknown = replace(ROW, duplicates=None)

    assert gates.rereads_are_known([again]).passed
    assert gates.rereads_are_known([again]).what == "5 duplicates on failover now."
    assert not gates.rereads_are_known([again, unknown]).passed
    assert "billing on orders-0" in gates.rereads_are_known([unknown]).what
    assert "map rebuild" in gates.rereads_are_known([unknown]).action


def test_the_rehearsal_names_positions_that_would_not_be_in_place_now_and_may_be_later() -> None:
    behind = replace(ROW, reason=GroupReason.BEHIND_OLDEST_SYNC)

    assert gates.would_be_in_place([ROW]).what == "1 group offset would be correct on failover now."
    assert gates.would_be_in_place([ROW, behind]).passed
    assert "billing on orders-0 (behind-oldest-sync)" in gates.would_be_in_place([ROW, behind]).what


@given(st.integers(0, 20), st.integers(0, 20), st.none() | st.integers(0, 20))
def test_a_partition_is_behind_while_records_from_its_position_on_are_left(
    start: int, length: int, position: int | None
) -> None:
    log = LogEnds({ORDERS: start + length}, {}, {}, {ORDERS: start})
    positions = {} if position is None else {ORDERS: position}

    expected = (start if position is None else position) < start + length

    assert bool(log.behind(positions)) is expected


@st.composite
def offset_runs(draw: st.DrawFn) -> tuple[OffsetRun, ...]:
    """Runs that ascend on both sides, with a hole between any two of them."""
    source = target = 0
    runs = []
    for _ in range(draw(st.integers(1, 6))):
        source += draw(st.integers(0, 5))
        target += draw(st.integers(0, 5))
        count = draw(st.integers(1, 5))
        runs.append(OffsetRun(source, target, count))
        source, target = source + count + 1, target + count
    return tuple(runs)


@given(offset_runs())
def test_the_inverse_of_an_offset_map_leads_every_record_back(runs: tuple[OffsetRun, ...]) -> None:
    row = SegmentRow(
        flow="a->b",
        topic="orders",
        partition=0,
        source_first=runs[0].source_first,
        source_next=runs[-1].source_next,
        target_first=runs[0].target_first,
        target_next=runs[-1].target_next,
        records=sum(run.count for run in runs),
        runs=encode(runs) if len(runs) > 1 else None,
        run_id="r",
    )

    back = inverse(row, flow="b->a", topic="orders-copy", unique="w")

    led_back = OffsetMap.of_segments([back])
    for run in runs:
        for number in range(run.count):
            assert led_back.to_target(run.target_first + number).offset == run.source_first + number
    assert (back.flow, back.topic) == ("b->a", "orders-copy")


def test_what_nobody_expected_is_told_with_the_step_that_it_ended() -> None:
    threads = RuntimeError("no more threads")

    assert attributes_of(threads) == {"reason": "unexpected", "what": "RuntimeError: no more threads"}
    assert attributes_of(KeyboardInterrupt()) == {"reason": "unexpected", "what": "KeyboardInterrupt"}
