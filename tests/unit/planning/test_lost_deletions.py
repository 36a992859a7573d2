"""Which partitions a run may have come too late for, and when a schedule will."""

from __future__ import annotations

from datetime import UTC, datetime

from mirror_lib.cluster.admin.model import ConfigEntry, ConfigOrigin, TopicConfigs
from mirror_lib.ledger.observed_rows import PartitionObservationRow
from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.past_runs.retention import tombstones_kept_ms
from mirror_lib.planning.lost_deletions import caught_up_at
from mirror_lib.planning.topic_limits import TopicLimits, deletion_warnings
from mirror_lib.topology.names import TopicPartition

SOURCE = TopicPartition("orders", 0)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
DAY_MS = 24 * 3600 * 1000


def configs(**values: str) -> TopicConfigs:
    named = {name.replace("_", "."): value for name, value in values.items()}
    return TopicConfigs("orders", {name: _entry(name, value) for name, value in named.items()})


def _entry(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name=name, value=value, origin=ConfigOrigin.TOPIC, sensitive=False, read_only=False)


def test_a_deletion_is_kept_as_long_as_the_broker_promises() -> None:
    for topic, kept in (
        (configs(cleanup_policy="delete", delete_retention_ms="1000"), None),
        (configs(cleanup_policy="compact", delete_retention_ms="1000"), 1000),
        (configs(cleanup_policy="compact,delete", delete_retention_ms="0"), 0),
        (configs(cleanup_policy="delete, compact"), DAY_MS),
        # Timestamps of producers may be old, so the lag may be over when a record is written.
        (configs(cleanup_policy="compact", delete_retention_ms="1000", min_compaction_lag_ms="500"), 1000),
        (
            configs(
                cleanup_policy="compact",
                delete_retention_ms="1000",
                min_compaction_lag_ms="500",
                message_timestamp_type="LogAppendTime",
            ),
            1500,
        ),
    ):
        assert tombstones_kept_ms(topic) == kept, topic


def observed(position: int, log_end: int) -> dict[TopicPartition, PartitionObservationRow]:
    row = PartitionObservationRow(
        flow="A->B",
        topic="orders",
        partition=0,
        target_topic="A.orders",
        observed_at=NOON,
        log_end=log_end,
        position=position,
        outlook="ok",
    )
    return {SOURCE: row}


def test_a_partition_that_was_observed_at_its_end_was_caught_up_then() -> None:
    assert caught_up_at(SOURCE, 7, NOON_MS - DAY_MS, observed(7, 7), {}) == NOON_MS


def test_an_observation_of_something_else_does_not_count() -> None:
    for position, log_end in ((7, 9), (5, 5)):
        assert caught_up_at(SOURCE, 7, NOON_MS - DAY_MS, observed(position, log_end), {}) == NOON_MS - DAY_MS, position


def test_positions_that_do_not_say_it_have_the_time_of_the_ledgers_copy() -> None:
    row = PositionRow(flow="A->B", topic="orders", partition=0, offset=6, state="closed", updated_at=NOON)
    assert caught_up_at(SOURCE, 7, None, {}, {SOURCE: row}) == NOON_MS
    assert caught_up_at(SOURCE, 6, None, {}, {SOURCE: row}) is None


def test_a_schedule_with_longer_pauses_than_deletions_are_kept_is_warned_of() -> None:
    topics = {"short": TopicLimits(tombstones_kept_ms=DAY_MS), "long": TopicLimits(tombstones_kept_ms=90 * DAY_MS)}
    (warning,) = deletion_warnings({**topics, "events": TopicLimits()}, "@monthly")
    assert "Topics: short." in warning
    assert "delete.retention.ms" in warning
    assert deletion_warnings(topics, "@hourly") == []
    assert deletion_warnings(topics, None) == []
