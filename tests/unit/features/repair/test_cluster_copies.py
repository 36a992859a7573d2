"""What a confirmed cluster change makes of the copies of a flow."""

from __future__ import annotations

import pytest

from mirror_lib.cluster.topics.position_format import (
    ClusterPair,
    Position,
    PositionState,
    has_same_offsets,
    name_of_copy,
)
from mirror_lib.cluster.topics.position_store import PositionSnapshot
from mirror_lib.features.repair import cluster_change
from mirror_lib.identity.histories import History, LedgerState
from mirror_lib.identity.ledger_positions import Past


@pytest.mark.parametrize("same", [False, True])
def test_another_copy_on_a_target_of_yesterday_keeps_to_the_offsets_of_the_one_before(same: bool) -> None:
    copy = name_of_copy("run-1", same_offsets=same)
    position = Position("orders", 0, 99, 100, PositionState.CLOSED, claim=5, copy=copy)
    past = Past(copy, History(LedgerState.AHEAD, 100, 100))

    accepted = cluster_change._on(ClusterPair("a", "b"), position, PositionSnapshot(), past)

    assert accepted.copy != copy
    assert has_same_offsets(accepted.copy) is same
