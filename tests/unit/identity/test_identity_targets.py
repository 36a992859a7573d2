"""Whether a target partition still holds what was copied to it."""

from __future__ import annotations

from typing import Any

from mirror_lib.cluster.topics.position_format import ClusterPair, Position, PositionState
from mirror_lib.errors import (
    SourceClusterChangedError,
    TargetClusterChangedError,
    TargetDeletedError,
    TargetRecreatedError,
    TargetRenamedError,
    TargetTruncatedError,
)
from mirror_lib.identity.targets import (
    CopiedTo,
    TargetPartition,
    copied_to,
    source_cluster_change,
    target_change,
    target_cluster_change,
)

NOW = TargetPartition("A.orders", "id-1", 40)
PAIR = ClusterPair("c-1", "c-2")


def then(**changes: Any) -> CopiedTo:
    return CopiedTo("A.orders", "id-1", PAIR, 40)._replace(**changes)


def position(**changes: Any) -> Position:
    return Position(
        "orders",
        0,
        **{"offset": 39, "target_offset": 40, "state": PositionState.CLOSED, "target_topic": "A.orders", **changes},
    )


def test_a_target_that_holds_what_was_copied_is_fine() -> None:
    for known, now in (
        (then(), NOW),
        # Records of others behind ours are for the take-over to judge.
        (then(), NOW._replace(log_end=50)),
        # Before Kafka 2.8 topics have no id; version 0.1.0 stored none.
        (then(), NOW._replace(topic_id=None)),
        (then(topic_id=None), NOW),
        (then(topic=None), NOW),
        # MirrorMaker 2 keeps no offset of the target.
        (then(log_end=None), NOW._replace(log_end=1)),
        # A transaction may be decided either way.
        (then(undecided=True), NOW._replace(log_end=30)),
        (None, NOW._replace(log_end=None)),
    ):
        assert target_change(known, now) is None, (known, now)


def test_a_target_that_lacks_it_is_told_by_its_kind() -> None:
    for known, now, error in (
        (then(), NOW._replace(topic="orders"), TargetRenamedError),
        # Another name counts also where that topic does not exist.
        (then(), TargetPartition("orders", None, None), TargetRenamedError),
        (then(), TargetPartition("A.orders", None, None), TargetDeletedError),
        (then(topic=None), TargetPartition("A.orders", None, None), TargetDeletedError),
        (then(), NOW._replace(topic_id="id-2"), TargetRecreatedError),
        (then(), NOW._replace(topic_id="id-2", log_end=0), TargetRecreatedError),
        (then(), NOW._replace(log_end=39), TargetTruncatedError),
        (then(topic_id=None), NOW._replace(log_end=0), TargetTruncatedError),
        (then(log_end=None, topic=None), NOW._replace(log_end=0), TargetTruncatedError),
    ):
        found = target_change(known, now)
        assert isinstance(found, error), (known, now)
        assert found.exit_code == 3


def test_positions_say_where_records_are_unless_they_are_before_the_first() -> None:
    known = then(topic_id=None, clusters=None)
    undecided = position(state=PositionState.OPEN, in_transactions=True)

    assert copied_to(position(), []) == known
    # In a merge the last writer says how far the log reaches.
    assert copied_to(position(), [position(target_offset=70)]) == known._replace(log_end=70)
    assert copied_to(position(target_offset=None), []) == known._replace(log_end=None)
    assert copied_to(undecided, []) == known._replace(undecided=True)
    assert copied_to(position(offset=-1, target_offset=0)) is None
    assert copied_to(position(offset=-1, target_offset=None)) is None


def test_another_cluster_is_told_by_its_side() -> None:
    source, target = PAIR._replace(source="x"), PAIR._replace(target="x")

    assert isinstance(source_cluster_change(PAIR, source), SourceClusterChangedError)
    assert isinstance(target_cluster_change(PAIR, target), TargetClusterChangedError)
    assert source_cluster_change(PAIR, target) is None
    assert target_cluster_change(PAIR, source) is None
    # Unknown clusters are no change.
    for known, now in ((None, PAIR), (PAIR, None), (PAIR, PAIR)):
        assert source_cluster_change(known, now) is None
        assert target_cluster_change(known, now) is None
