"""What a topic follows that has no configs of its own, by its broker's."""

from __future__ import annotations

from mirror_lib.planning.new_topics import defaults_of


def test_the_finest_unit_that_is_set_counts() -> None:
    for broker, kept in (
        ({"log.retention.hours": "168"}, "604800000"),
        ({"log.retention.hours": "168", "log.retention.minutes": "30", "log.retention.ms": None}, "1800000"),
        ({"log.retention.hours": "168", "log.retention.minutes": "30", "log.retention.ms": "5000"}, "5000"),
        ({"log.retention.hours": "-1"}, "-1"),
        ({}, None),
    ):
        # As Kafka's documentation of log.retention.ms, log.retention.minutes and log.retention.hours says.
        assert defaults_of(broker).get("retention.ms") == kept, kept


def test_configs_have_other_names_on_brokers() -> None:
    broker = {
        "message.max.bytes": "1000012",
        "log.cleanup.policy": "compact",
        "log.message.timestamp.type": "LogAppendTime",
        "num.io.threads": "8",
    }

    assert defaults_of(broker) == {
        "max.message.bytes": "1000012",
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
    }
