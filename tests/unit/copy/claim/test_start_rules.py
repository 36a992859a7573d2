"""How a copy may begin, by the last position and the end of the target.

Where partitions without a position begin: the flow's own rules, then its consumer's `auto.offset.reset`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import NOTHING_COPIED, Position, PositionState, name_of_copy
from mirror_lib.config.first_start import EARLIEST, LATEST, FirstStarts, first_starts
from mirror_lib.config.loader import load
from mirror_lib.config.model import ExistingTarget, FirstStart
from mirror_lib.copy.claim.start_rules import StartRules, TargetEnds, needs_sync, start_of
from mirror_lib.errors import (
    ConfigurationError,
    DirtyStartError,
    OffsetsDifferError,
    TargetNotEmptyError,
    TargetTruncatedError,
)
from mirror_lib.planning.model import PartitionPlan, Takeover
from mirror_lib.topology.names import FlowId, TopicPartition

SOURCE, OTHER, TARGET = (TopicPartition(name, 0) for name in ("orders", "sales", "A.orders"))
RULES = StartRules(FlowId("A", "B"), lease_seconds=30.0)


def position(offset: int = 99, **fields: Any) -> Position:
    return Position("orders", 0, offset, **fields)


def closed(target_offset: int, **fields: Any) -> Position:
    return position(target_offset=target_offset, state=PositionState.CLOSED, producer_id=7, epoch=1, **fields)


def opened(target_offset: int, **fields: Any) -> Position:
    return position(target_offset=target_offset, state=PositionState.OPEN, producer_id=7, epoch=1, **fields)


def start(last: Position | None, ends: TargetEnds, *, rules: StartRules = RULES) -> Takeover | None:
    begin = 0 if last is None else last.offset + 1
    plan = PartitionPlan(SOURCE, TARGET, begin, begin + 50, "id", 1_000_000, 0)
    return start_of(rules, plan, {} if last is None else {SOURCE: last}, (SOURCE,), ends)


def test_a_closed_position_that_fits_the_target_is_a_clean_start() -> None:
    assert start(closed(40), TargetEnds(0, 40)) is None
    # The name of a backfill may still be there: only an open one has not ended.
    assert start(closed(40, backfill="history"), TargetEnds(0, 40)) is None


def test_the_same_offsets_are_refused_in_a_merge_also_at_its_first_start() -> None:
    plan = PartitionPlan(SOURCE, TARGET, 0, 50, "id", 1_000_000, 0)
    rules = replace(RULES, most_holes=10)
    assert start_of(rules, plan, {}, (SOURCE,), TargetEnds(0, 0)) is None

    with pytest.raises(OffsetsDifferError, match=r"several source partitions are copied to A\.orders-0"):
        start_of(rules, plan, {}, (SOURCE, OTHER), TargetEnds(0, 0))


def test_a_copy_with_the_same_offsets_does_not_go_back_behind_the_end_of_its_target() -> None:
    plan = PartitionPlan(SOURCE, TARGET, 30, 50, "id", 1_000_000, 0)
    rules = replace(RULES, most_holes=10)
    moved_back = replace(closed(40), offset=29, copy=name_of_copy("set", same_offsets=True))
    again = replace(moved_back, offset=NOTHING_COPIED)
    with pytest.raises(OffsetsDifferError, match="continues at source offset 0"):
        start_of(rules, replace(plan, start=0), {SOURCE: again}, (SOURCE,), TargetEnds(0, 40))

    with pytest.raises(
        OffsetsDifferError, match=r"continues at source offset 30, and A\.orders-0 ends at offset 40"
    ) as caught:
        start_of(rules, plan, {SOURCE: moved_back}, (SOURCE,), TargetEnds(0, 40))

    assert "--to 40" in caught.value.action


def test_a_closed_position_before_the_end_is_taken_over_from_its_pair_on() -> None:
    assert start(closed(40), TargetEnds(5, 43)) == Takeover(100, 40, 7, 1, target_log_start=5, lease_seconds=30.0)


def test_an_open_position_is_always_taken_over() -> None:
    for in_transactions, ends in (
        (False, (40, 41, 1000)),
        # Nothing is to be looked for behind it, and its marker may lack.
        (True, (39, 60)),
    ):
        for end in ends:
            takeover = start(opened(40, in_transactions=in_transactions), TargetEnds(0, end))

            assert takeover is not None, end
            assert (takeover.source_offset, takeover.target_offset, takeover.producer_id) == (100, 40, 7), end
            assert takeover.in_transactions is in_transactions


def test_a_target_that_ends_before_what_was_copied_was_truncated(subtests: pytest.Subtests) -> None:
    for last in (closed(40), opened(40), closed(40, in_transactions=True)):
        with subtests.test(last=last):
            with pytest.raises(TargetTruncatedError, match="is 39, expected at least 40") as caught:
                start(last, TargetEnds(0, 39))

            assert (caught.value.where.flow, caught.value.where.topic) == ("A->B", "orders")


def test_a_first_start_into_an_empty_target_is_clean() -> None:
    for end in (0, 3):
        # Offsets may have been used by records that retention has deleted, or by markers.
        assert start(None, TargetEnds(end, end)) is None, end


def test_a_first_start_onto_records_of_others_names_the_choices_unless_the_flow_says_that_it_may_append() -> None:
    with pytest.raises(TargetNotEmptyError, match=r"offsets 0 to 2 \(records, or markers of transactions\)") as caught:
        start(None, TargetEnds(0, 3))

    for choice in (
        "mirror.target.existing=append",
        "mirror.topics.rename",
        # Records of this flow, whose position topic was deleted, would be there twice if it appended.
        "`mirror position set --flow 'A->B' --topic orders --partition 0 --to OFFSET`",
    ):
        assert choice in caught.value.action

    assert start(None, TargetEnds(0, 3), rules=StartRules(FlowId("A", "B"), ExistingTarget.APPEND)) is None


def test_mirror_maker_that_copied_nothing_is_as_a_first_start() -> None:
    assert start(position(NOTHING_COPIED), TargetEnds(0, 0)) is None
    with pytest.raises(TargetNotEmptyError):
        start(position(NOTHING_COPIED), TargetEnds(0, 1))


def test_mirror_makers_position_begins_at_its_newest_offset_sync() -> None:
    rules = StartRules(FlowId("A", "B"), lease_seconds=30.0, syncs={SOURCE: OffsetSync("orders", 0, 80, 95)})

    assert needs_sync(position(99))
    assert start(position(99), TargetEnds(0, 120), rules=rules) == Takeover(
        80, 95, None, None, target_log_start=0, lease_seconds=30.0
    )
    # The target ends before it.
    with pytest.raises(TargetTruncatedError):
        start(position(99), TargetEnds(0, 95), rules=rules)


def test_mirror_makers_position_without_a_sync_is_refused() -> None:
    with pytest.raises(DirtyStartError, match="no offset-sync"):
        start(position(99), TargetEnds(0, 120))


def merged(*last: Position, end: int) -> Takeover | None:
    plan = PartitionPlan(SOURCE, TARGET, 100, 150, "id", 1_000_000, 0)
    return start_of(RULES, plan, {each.source: each for each in last}, (SOURCE, OTHER), TargetEnds(0, end))


def of_other(target_offset: int, state: PositionState, **fields: Any) -> Position:
    return Position("sales", 0, 7, target_offset=target_offset, state=state, **fields)


def test_only_a_merge_that_ended_well_starts_clean_others_cannot_be_told_apart(subtests: pytest.Subtests) -> None:
    assert merged(closed(40), end=40) is None

    in_transactions = opened(40, in_transactions=True)
    for case, last, end in (
        ("not closed", [opened(40)], 40),
        ("more than was copied", [closed(40)], 41),
        ("one was interrupted without transactions", [in_transactions, of_other(44, PositionState.OPEN)], 60),
        ("somebody else wrote behind a closed merge", [closed(40), of_other(44, PositionState.CLOSED)], 60),
    ):
        with subtests.test(case=case), pytest.raises(DirtyStartError, match="merged"):
            merged(*last, end=end)


def test_given_a_merge_that_was_interrupted_in_transactions_then_each_position_tells_where_it_goes_on() -> None:
    other = of_other(44, PositionState.OPEN, in_transactions=True)

    takeover = merged(opened(40, in_transactions=True), other, end=60)

    assert (takeover.source_offset, takeover.target_offset, takeover.in_transactions) == (100, 40, True)
    # A partition that is closed or new in the merge goes on too.
    for last in ((closed(40), other), (other,)):
        takeover = merged(*last, end=60)
        assert (takeover.source_offset, takeover.in_transactions) == (100, True)


FILE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


def rules(folder: Path, *lines: str) -> FirstStarts:
    path = folder / "mirror.properties"
    path.write_text(FILE + "\n".join(lines))
    return first_starts(load(path).flow("A->B"))


def test_a_flow_begins_where_its_file_says(tmp_path: Path) -> None:
    for line, expected in (
        ("", EARLIEST),
        ("A.consumer.auto.offset.reset = latest", LATEST),
        ("A.consumer.auto.offset.reset = earliest", EARLIEST),
        ("mirror.first.start = latest", LATEST),
        # The flow's own rule is stronger than the consumer's.
        ("A.consumer.auto.offset.reset = none\nmirror.first.start = latest", LATEST),
        ("A->B.mirror.first.start = offset 40", FirstStart(offset=40)),
        ("mirror.first.start = 2023-11-14T22:13:20Z", FirstStart(timestamp_ms=1_700_000_000_000)),
    ):
        assert rules(tmp_path, line).of("orders") == expected, line


def test_topics_have_their_own_rules_and_the_first_that_matches_the_whole_name_wins(tmp_path: Path) -> None:
    found = rules(
        tmp_path,
        "A.consumer.auto.offset.reset = latest",
        "mirror.first.start.topics = audit=earliest, pay.*=offset 7, payments=earliest",
    )

    assert {topic: found.of(topic) for topic in ("audit", "audit-2", "payments", "orders")} == {
        "audit": EARLIEST,
        "audit-2": LATEST,
        "payments": FirstStart(offset=7),
        "orders": LATEST,
    }


def test_any_other_reset_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'LATEST'") as caught:
        rules(tmp_path, "A.consumer.auto.offset.reset = LATEST")
    assert "A.consumer.auto.offset.reset" in str(caught.value)
