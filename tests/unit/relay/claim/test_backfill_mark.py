"""A position that says that a backfill is writing in the flow's place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_lib.cluster.topics.positions import Position, PositionState, decode_value, encode_value
from mirror_lib.errors import DirtyStartError
from mirror_lib.relay.claim.start_rules import StartRules, TargetEnds, start_of
from mirror_lib.relay.model import PartitionPlan
from mirror_lib.topology.names import FlowId, TopicPartition

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
PLAN = PartitionPlan(SOURCE, TARGET, 10, 20, "id-1", 1_048_588, 0)
RULES = StartRules(FlowId("A", "B"))
MARK = Position(
    "orders", 0, 9, target_offset=10, state=PositionState.OPEN, run_id="r", claim=3, topic_id="id-1", backfill="history"
)


def test_the_mark_is_kept_in_the_position() -> None:
    assert decode_value(SOURCE, encode_value(MARK)) == MARK
    assert b"backfill" not in encode_value(replace(MARK, backfill=None))


def test_the_flow_does_not_start_while_a_backfill_has_not_ended(subtests: pytest.Subtests) -> None:
    for end in (10, 15):
        with subtests.test(end=end):
            with pytest.raises(DirtyStartError, match=r"backfill history into A\.orders-0") as caught:
                start_of(RULES, PLAN, {SOURCE: MARK}, [SOURCE], TargetEnds(0, end))

            assert "mirror backfill run --flow 'A->B' --name history" in caught.value.action


def test_the_flow_goes_on_behind_a_backfill_that_has_ended() -> None:
    closed = replace(MARK, state=PositionState.CLOSED, backfill=None, target_offset=15)

    assert start_of(RULES, PLAN, {SOURCE: closed}, [SOURCE], TargetEnds(0, 15)) is None
    # Its name may still be there: only an open one is not finished.
    named = replace(closed, backfill="history")
    assert start_of(RULES, PLAN, {SOURCE: named}, [SOURCE], TargetEnds(0, 15)) is None
