"""What topic configs say about deleting (Kafka's topic configuration reference, KIP-405, KIP-1161)."""

from __future__ import annotations

from mirror_lib.cluster.admin.model import ConfigEntry, ConfigOrigin, TopicConfigs
from mirror_lib.past_runs.retention import Retention


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


def test_only_the_policy_delete_loses_records_to_retention() -> None:
    for policy in ("compact", ""):
        found = Retention.of(configs(cleanup_policy=policy, retention_ms="60000", retention_bytes="5000"))
        assert (found.seconds, found.bytes, found.deletes) == (None, None, False), policy
    for policy in ("compact,delete", "delete, compact"):
        assert Retention.of(configs(cleanup_policy=policy, retention_ms="60000")).seconds == 60, policy


def test_minus_one_is_no_bound_and_where_the_bound_is_zero_nothing_is_kept() -> None:
    assert not Retention.of(configs(cleanup_policy="delete", retention_ms="-1", retention_bytes="-1")).deletes
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
