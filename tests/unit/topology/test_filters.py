"""MM2's filters, by the rules of `DefaultTopicFilter`, `DefaultGroupFilter` and `DefaultConfigPropertyFilter`."""

from __future__ import annotations

import pickle
import re
import sys
import types
from collections.abc import Mapping

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.topology.filters import (
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
    TopicFilter,
    config_property_filter_for,
    group_filter_for,
    topic_filter_for,
)

JAVA = "org.apache.kafka.connect.mirror."


class OnlyShort(TopicFilter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.longest = len(options["topics"])

    def should_replicate_topic(self, topic: str) -> bool:
        return len(topic) <= self.longest


def test_a_topic_is_taken_when_included_and_not_excluded() -> None:
    for include, exclude, topic, taken in [
        (".*", "", "orders", True),
        ("orders", "", "orders2", False),
        ("orders, pay.*", "", "payments", True),
        (".*", r".*[\-\.]internal, .*\.replica, __.*", "x.replica", False),
        (".*", r".*[\-\.]internal, .*\.replica, __.*", "x.internal", False),
        (".*", r".*[\-\.]internal, .*\.replica, __.*", "x_internal", True),
        ("orders", "orders", "orders", False),
        ("", "", "orders", False),
        ("  ", "", "orders", False),
    ]:
        chosen = topic_filter_for(JAVA + "DefaultTopicFilter", {"topics": include, "topics.exclude": exclude})

        assert chosen.should_replicate_topic(topic) is taken, include


def test_filters_name_a_wrong_regex_compare_and_pickle() -> None:
    for key in ("topics", "topics.exclude"):
        with pytest.raises(ConfigurationError, match=rf"{re.escape(key)}: the Java regex '\(a'"):
            topic_filter_for(JAVA + "DefaultTopicFilter", {key: "(a"})
    for kind in (DefaultTopicFilter, DefaultGroupFilter, DefaultConfigPropertyFilter):
        assert pickle.loads(pickle.dumps(kind({"topics": "a"}))) == kind({"topics": "a"})


def test_topic_configs_are_copied_unless_excluded() -> None:
    chosen = config_property_filter_for(
        JAVA + "DefaultConfigPropertyFilter", {"config.properties.exclude": r"min\.insync\.replicas, follower\..*"}
    )

    assert chosen.should_replicate_config_property("retention.ms")
    assert not chosen.should_replicate_config_property("min.insync.replicas")
    assert not chosen.should_replicate_config_property("follower.replication.throttled.replicas")
    assert DefaultConfigPropertyFilter({}).should_replicate_config_property("min.insync.replicas")


def test_source_defaults_are_copied_only_for_the_exact_word() -> None:
    for text, copied in [("source", True), ("target", False), ("Source", False), ("", False)]:
        assert (
            DefaultConfigPropertyFilter({"use.defaults.from": text}).should_replicate_source_default("x") is copied
        ), text


def test_a_filter_of_ones_own_gets_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("company_filters")
    module.OnlyShort = OnlyShort  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "company_filters", module)

    chosen = topic_filter_for("company_filters.OnlyShort", {"topics": "xxx"})

    assert chosen.should_replicate_topic("abc")
    assert not chosen.should_replicate_topic("abcd")
    with pytest.raises(ConfigurationError, match="is not a GroupFilter"):
        group_filter_for("company_filters.OnlyShort", {})
