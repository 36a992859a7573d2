"""What target topics accept less than their sources is told before a copy, topic by topic and in words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mirror_lib.cluster.admin.client import ConfigEntry, ConfigOrigin, TopicConfigs
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.planning.topic_limits import LimitKind, LimitWarning, TopicLimits, compare_limits, record_rules
from mirror_lib.records.rules import ANY_RECORD, RecordRules

HOUR = 3_600_000
UNBOUNDED = str(2**63 - 1)
#: What Kafka 4.3 answers for a topic without configs of its own (KIP-1030: an hour into the future).
KAFKA_4 = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": UNBOUNDED,
    "message.timestamp.after.max.ms": str(HOUR),
    "cleanup.policy": "delete",
    "retention.ms": str(7 * 24 * HOUR),
    "retention.bytes": "-1",
}


def configs(values: Mapping[str, str]) -> TopicConfigs:
    entries = {name: ConfigEntry(name, value, ConfigOrigin.DEFAULT) for name, value in values.items()}
    return TopicConfigs("orders", entries)


def limits(**changed: str) -> TopicLimits:
    return TopicLimits.of(configs({**KAFKA_4, **{name.replace("_", "."): value for name, value in changed.items()}}))


def kinds(source: TopicLimits, target: TopicLimits) -> list[LimitKind]:
    found = compare_limits({"orders": "A.orders"}, {"orders": source}, {"A.orders": target})
    return [warning.kind for warning in found]


class TestReadingConfigs:
    def test_brokers_that_report_less_are_understood_too(self) -> None:
        for reported, expected in (
            # Of a topic of which nothing is known: what Kafka takes by default.
            ({}, TopicLimits(max_message_bytes=1_048_588)),
            # Before 3.6 one bound counts for both sides.
            ({"difference": "5000"}, TopicLimits(timestamp_before_max_ms=5000, timestamp_after_max_ms=5000)),
            # LogConfig.messageTimestampBeforeMaxMs of Kafka 3.6 to 3.9: the newer bound wins, the older one fills in.
            (
                {"difference": "5000", "before": "7000", "after": UNBOUNDED},
                TopicLimits(timestamp_before_max_ms=7000, timestamp_after_max_ms=5000),
            ),
        ):
            read = TopicLimits.of(configs({f"message.timestamp.{bound}.max.ms": reported[bound] for bound in reported}))
            assert read == expected, reported

    def test_log_append_time_knows_no_bounds(self) -> None:
        read = limits(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms="1000")
        assert (read.timestamp_before_max_ms, read.timestamp_after_max_ms, read.log_append_time) == (None, None, True)

    def test_any_compaction_needs_keys(self) -> None:
        assert not limits(cleanup_policy="delete").compacted
        for policy in ("compact", "compact,delete", "delete, compact"):
            assert limits(cleanup_policy=policy).compacted, policy


class TestRulesForTheCopy:
    def test_a_target_without_limits_lets_every_record_pass_unseen(self) -> None:
        assert record_rules(limits(), TopicLimits()) == ANY_RECORD

    def test_a_target_with_limits_is_minded(self) -> None:
        target = limits(message_timestamp_before_max_ms="1000", cleanup_policy="compact")
        assert record_rules(limits(), target) == RecordRules(1000, HOUR, needs_key=True)

    def test_keys_are_not_looked_at_where_the_source_is_compacted_too(self) -> None:
        compacted = limits(cleanup_policy="compact")
        assert not record_rules(compacted, compacted).needs_key

    def test_a_source_that_may_not_be_asked_is_taken_not_to_be_compacted(self) -> None:
        assert record_rules(None, limits(cleanup_policy="compact")).needs_key


class TestComparing:
    def test_a_target_that_takes_and_keeps_as_much_gives_no_warning(self) -> None:
        wider = limits(max_message_bytes="2000000", message_timestamp_after_max_ms=UNBOUNDED, retention_ms="-1")
        compacted = limits(cleanup_policy="compact")
        for source, target in (
            (limits(), limits()),
            (compacted, wider),
            *((limits(retention_ms=kept), limits(retention_ms="-1")) for kept in (str(HOUR), "-1")),
            (limits(retention_ms="60000"), limits(retention_ms=str(HOUR))),
            # A target that is compacted only deletes nothing by age.
            (
                limits(cleanup_policy="compact", retention_ms="-1"),
                limits(cleanup_policy="compact", retention_ms="1000"),
            ),
            # A source that stamps records itself has none in the future.
            (limits(message_timestamp_type="LogAppendTime"), limits()),
        ):
            assert kinds(source, target) == [], (source, target)

    def test_each_narrower_limit_gives_its_own(self) -> None:
        for config, value, kind in (
            ("max_message_bytes", "1000", LimitKind.SIZE),
            ("message_timestamp_before_max_ms", str(HOUR), LimitKind.TIMESTAMP_BEFORE),
            ("message_timestamp_after_max_ms", "1000", LimitKind.TIMESTAMP_AFTER),
            ("message_timestamp_type", "LogAppendTime", LimitKind.LOG_APPEND_TIME),
            ("cleanup_policy", "compact,delete", LimitKind.KEY),
            ("retention_ms", str(HOUR), LimitKind.RETENTION),
            ("retention_bytes", "1000", LimitKind.RETENTION),
        ):
            assert kinds(limits(), limits(**{config: value})) == [kind], config
        assert kinds(limits(retention_ms="-1"), limits(retention_ms=str(HOUR))) == [LimitKind.RETENTION]

    def test_a_bound_on_the_past_counts_even_if_the_source_has_the_same(self) -> None:
        # Records were young enough when they were written; they are older when they are copied.
        hourly = limits(message_timestamp_before_max_ms=str(HOUR))
        assert kinds(hourly, hourly) == [LimitKind.TIMESTAMP_BEFORE]

    def test_topics_with_the_same_trouble_share_a_warning(self) -> None:
        remote = {name: f"A.{name}" for name in ("c", "a", "b", "gone")}
        targets = {"A.a": limits(max_message_bytes="1000"), "A.b": limits(), "A.c": limits(max_message_bytes="2000")}
        (warning,) = compare_limits(remote, dict.fromkeys(remote, limits()), targets)
        assert (warning.kind, warning.topics) == (LimitKind.SIZE, ("a", "c"))


class TestTelling:
    WARNING = LimitWarning(LimitKind.SIZE, tuple("abcdefg"), "The target accepts less.")

    def test_the_text_says_what_happens_under_the_flows_policy_and_what_to_do(self, subtests: pytest.Subtests) -> None:
        for policy, consequence in (
            (PoisonPolicy.FAIL, "stops before the first such record"),
            (PoisonPolicy.QUARANTINE, "written to the quarantine topic"),
            (PoisonPolicy.SKIP, "skipped"),
        ):
            with subtests.test(policy=policy):
                text = self.WARNING.text(policy)
                assert consequence in text
                assert "max.message.bytes" in text

    def test_of_many_topics_only_some_are_named(self) -> None:
        assert "Topics: a, b, c, d, e and 2 more." in self.WARNING.text(PoisonPolicy.FAIL)
