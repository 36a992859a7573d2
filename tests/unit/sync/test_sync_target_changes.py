"""Whether a target partition still holds what was copied to it."""

from __future__ import annotations

from typing import Any

import pytest

from mirror_lib.cluster.topics.positions import ClusterPair, Position, PositionState
from mirror_lib.errors import (
    ReplicationError,
    SourceClusterChangedError,
    TargetClusterChangedError,
    TargetDeletedError,
    TargetRecreatedError,
    TargetRenamedError,
    TargetTruncatedError,
)
from mirror_lib.sync.target_changes import (
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


@pytest.mark.parametrize(
    ("known", "now"),
    [
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
    ],
)
def test_a_target_that_holds_what_was_copied_is_fine(known: CopiedTo | None, now: TargetPartition) -> None:
    assert target_change(known, now) is None


@pytest.mark.parametrize(
    ("known", "now", "error"),
    [
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
    ],
)
def test_a_target_that_lacks_it_is_told_by_its_kind(
    known: CopiedTo, now: TargetPartition, error: type[ReplicationError]
) -> None:
    found = target_change(known, now)

    assert isinstance(found, error)
    assert found.exit_code == 3


@pytest.mark.parametrize(
    ("own", "sharing", "expected"),
    [
        (position(), [], then(topic_id=None, clusters=None)),
        # In a merge the last writer says how far the log reaches.
        (position(), [position(target_offset=70)], then(topic_id=None, clusters=None, log_end=70)),
        (position(target_offset=None), [], then(topic_id=None, clusters=None, log_end=None)),
        (
            position(state=PositionState.OPEN, in_transactions=True),
            [],
            then(topic_id=None, clusters=None, undecided=True),
        ),
    ],
)
def test_positions_say_where_records_are(own: Position, sharing: list[Position], expected: CopiedTo) -> None:
    assert copied_to(own, sharing) == expected


@pytest.mark.parametrize("nothing", [position(offset=-1, target_offset=0), position(offset=-1, target_offset=None)])
def test_a_position_before_the_first_record_says_so_of_none(nothing: Position) -> None:
    assert copied_to(nothing) is None


def test_another_cluster_is_told_by_its_side() -> None:
    source, target = PAIR._replace(source="x"), PAIR._replace(target="x")

    assert isinstance(source_cluster_change(PAIR, source), SourceClusterChangedError)
    assert isinstance(target_cluster_change(PAIR, target), TargetClusterChangedError)
    assert source_cluster_change(PAIR, target) is None
    assert target_cluster_change(PAIR, source) is None


@pytest.mark.parametrize(("known", "now"), [(None, PAIR), (PAIR, None), (PAIR, PAIR)])
def test_unknown_clusters_are_no_change(known: ClusterPair | None, now: ClusterPair | None) -> None:
    assert source_cluster_change(known, now) is None
    assert target_cluster_change(known, now) is None
