"""What topic configs say about deleting (Kafka's topic configuration reference, KIP-405, KIP-1161)."""

from __future__ import annotations

import pytest

from mirror_lib.cluster.admin.model import ConfigEntry, ConfigOrigin, TopicConfigs
from mirror_lib.observe.retention import Retention


def configs(**values: str) -> TopicConfigs:
    named = {name.replace("_", "."): value for name, value in values.items()}
    return TopicConfigs("t", {name: ConfigEntry(name, value, ConfigOrigin.DEFAULT) for name, value in named.items()})


def test_age_and_size_delete_where_the_policy_says_so() -> None:
    found = Retention.of(
        configs(
            cleanup_policy="delete",
            retention_ms="60000",
            retention_bytes="5000",
            segment_ms="10000",
            segment_bytes="1000",
            message_timestamp_type="LogAppendTime",
        )
    )

    assert found == Retention(60.0, 5000, 10.0, 1000, remote=False, append_time=True)
    assert found.deletes


@pytest.mark.parametrize("policy", ["compact", ""])
def test_a_topic_that_is_only_compacted_or_has_no_policy_loses_nothing_to_retention(policy: str) -> None:
    found = Retention.of(configs(cleanup_policy=policy, retention_ms="60000", retention_bytes="5000"))

    assert (found.seconds, found.bytes, found.deletes) == (None, None, False)


@pytest.mark.parametrize("policy", ["compact,delete", "delete, compact"])
def test_a_topic_that_is_compacted_and_deleted_from_loses_by_retention(policy: str) -> None:
    assert Retention.of(configs(cleanup_policy=policy, retention_ms="60000")).seconds == 60


def test_minus_one_is_no_bound() -> None:
    assert not Retention.of(configs(cleanup_policy="delete", retention_ms="-1", retention_bytes="-1")).deletes


def test_nothing_is_kept_where_the_bound_is_zero() -> None:
    assert Retention.of(configs(cleanup_policy="delete", retention_ms="0")).seconds == 0


def test_in_tiered_storage_the_bounds_of_the_whole_log_count() -> None:
    found = Retention.of(
        configs(
            cleanup_policy="delete",
            retention_ms="600000",
            retention_bytes="-1",
            remote_storage_enable="true",
            local_retention_ms="1000",
            local_retention_bytes="10",
        )
    )

    assert (found.seconds, found.bytes, found.remote) == (600, None, True)


def test_a_broker_that_tells_no_segment_size_has_kafkas_defaults() -> None:
    found = Retention.of(configs(cleanup_policy="delete"))

    assert (found.segment_seconds, found.segment_bytes) == (7 * 24 * 3600, 1024**3)
