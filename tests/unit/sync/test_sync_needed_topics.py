"""Why topics that a flow needs could not be made: all reasons at once, from what brokers say."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.sync.topics.needed import NeededTopic, find_obstacles

POSITIONS = NeededTopic("mm2-offsets.A.internal", 3, "B.offset.storage.replication.factor")
TRANSACTIONS = NeededTopic(
    "__transaction_state",
    3,
    "transaction.state.log.replication.factor of the brokers",
    "Or run the flow without transactional ids: mirror.fencing=none.",
    in_sync=2,
    in_sync_setting="transaction.state.log.min.isr of the brokers",
)


def told(*needed: NeededTopic, brokers: int, present: tuple[str, ...] = ()) -> list[str]:
    return [str(each) for each in find_obstacles("B", needed, brokers, present)]


def test_all_factors_that_are_too_large_are_told_with_their_settings() -> None:
    assert told(POSITIONS, TRANSACTIONS, brokers=1) == [
        "on cluster B mm2-offsets.A.internal would get 3 replicas (B.offset.storage.replication.factor), but the "
        "cluster has 1 broker.",
        "on cluster B __transaction_state would get 3 replicas (transaction.state.log.replication.factor of the "
        "brokers), but the cluster has 1 broker. Or run the flow without transactional ids: mirror.fencing=none.",
    ]


@given(factor=st.integers(1, 5), in_sync=st.integers(1, 5), brokers=st.integers(1, 5))
def test_a_topic_can_be_made_and_written_to_where_brokers_and_replicas_are_enough(
    factor: int, in_sync: int, brokers: int
) -> None:
    topic = replace(TRANSACTIONS, replication_factor=factor, in_sync=in_sync)

    assert bool(told(topic, brokers=brokers)) is not (in_sync <= factor <= brokers)


def test_more_in_sync_replicas_than_replicas_are_told() -> None:
    (one,) = told(replace(TRANSACTIONS, replication_factor=1), brokers=1)

    assert "2 in-sync replicas (transaction.state.log.min.isr of the brokers) of 1" in one


def test_a_name_that_only_dots_tell_from_another_is_refused_by_kafka() -> None:
    underscored = replace(POSITIONS, name="mm2-offset-syncs_B_internal")

    (one,) = told(underscored, brokers=3, present=("mm2-offset-syncs.B.internal", "orders"))

    assert "differs from topic mm2-offset-syncs.B.internal only in `.` and `_`" in one
    assert "replication.policy.separator" in one
    assert told(underscored, brokers=3, present=("mm2-offset-syncs_B_internal",)) == []
