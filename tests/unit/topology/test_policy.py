"""Replication policies: what Kafka 4.3.1's own classes answer (`ReplicationPolicyTest`, and asked directly)."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError
from mirror_lib.topology.policy import (
    INTERNAL_SEPARATOR_ENABLED,
    SEPARATOR,
    SOURCE_ALIAS,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    policy_for,
)

JAVA = "org.apache.kafka.connect.mirror."
DEFAULT = DefaultReplicationPolicy({})
IDENTITY = IdentityReplicationPolicy({SOURCE_ALIAS: "A"})

ALIASES = st.text("abcXYZ019-_", min_size=1, max_size=6)
TOPICS = st.text("abcXYZ019-_", min_size=1, max_size=12)


class Upper(ReplicationPolicy):
    """A policy of somebody's own, with only what it must have."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.suffix = options.get("replication.policy.suffix", "")

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic.upper() + self.suffix

    def topic_source(self, topic: str) -> str | None:
        return None

    def upstream_topic(self, topic: str) -> str | None:
        return None


class Broken(Upper):
    def __init__(self, options: Mapping[str, str]) -> None:
        raise KeyError("suffix")


def test_the_default_policy_takes_names_apart_as_java_splits() -> None:
    for topic, source, upstream, original in [
        ("orders", None, None, "orders"),
        ("A.orders", "A", "orders", "orders"),
        ("B.A.x", "B", "A.x", "x"),
        ("us.west.t", "us", "west.t", "t"),
        ("a.", None, None, "a."),
        ("a..", None, None, "a.."),
        (".b", "", "b", "b"),
        ("..b", "", ".b", "b"),
        ("a..b", "a", ".b", "b"),
        (".", None, None, "."),
        ("..", None, None, ".."),
        ("", None, None, ""),
        ("A.b.", "A", "b.", "b."),
    ]:
        assert DEFAULT.topic_source(topic) == source, topic
        assert DEFAULT.upstream_topic(topic) == upstream, topic
        assert DEFAULT.original_topic(topic) == original, topic


def test_a_separator_is_literal_text() -> None:
    for separator, topic, source, upstream in [
        ("_", "A_orders", "A", "orders"),
        ("_", "A.orders", None, None),
        ("_", "a__", None, None),
        ("__", "a___", "a", "_"),
        ("__", "a__", None, None),
        ("-.-", "us-.-t", "us", "t"),
        ("|", "a|b", "a", "b"),
        ("", "a", None, None),
        ("", "ab", "a", "b"),
    ]:
        policy = DefaultReplicationPolicy({SEPARATOR: separator})

        assert (policy.topic_source(topic), policy.upstream_topic(topic)) == (source, upstream), separator


def test_internal_topics_follow_the_separator_unless_told_otherwise(subtests: pytest.Subtests) -> None:
    dotted = ("mm2-offset-syncs.B.internal", "B.checkpoints.internal")
    separated = ("mm2-offset-syncs_B_internal", "B_checkpoints_internal")
    cases: list[tuple[Mapping[str, str], tuple[str, str]]] = [
        ({}, dotted),
        ({SEPARATOR: "_"}, separated),
        ({SEPARATOR: "_", INTERNAL_SEPARATOR_ENABLED: "false"}, dotted),
        ({SEPARATOR: "_", INTERNAL_SEPARATOR_ENABLED: "TRUE"}, separated),
        ({SEPARATOR: "_", INTERNAL_SEPARATOR_ENABLED: "yes"}, dotted),
        ({SEPARATOR: "_", INTERNAL_SEPARATOR_ENABLED: "true "}, dotted),
        ({INTERNAL_SEPARATOR_ENABLED: "false"}, dotted),
    ]
    for (options, (syncs, checkpoints)), kind in product(cases, (DefaultReplicationPolicy, IdentityReplicationPolicy)):
        with subtests.test(options=options, kind=kind):
            policy = kind(options)
            assert policy.offset_syncs_topic("B") == syncs
            assert policy.checkpoints_topic("B") == checkpoints
            assert policy.is_mm2_internal_topic(syncs)
            assert policy.is_checkpoints_topic(checkpoints)
            assert policy.is_internal_topic(checkpoints)
            assert policy.heartbeats_topic() == "heartbeats"


def test_only_topics_of_kafka_and_mm2_are_internal(subtests: pytest.Subtests) -> None:
    for topic, mm2, internal in [
        ("__consumer_offsets", False, True),
        (".hidden", False, True),
        ("mm2-offset-syncs.B.internal", True, True),
        ("mm2-offsets.A.internal", True, True),
        ("A.checkpoints.internal", True, True),
        # The user's own since KIP-1074.
        ("x.internal", False, False),
        ("x-internal", False, False),
        ("mm2-offset-syncs_B_internal", False, False),
        ("orders", False, False),
    ]:
        with subtests.test(topic):
            for policy in (DEFAULT, IDENTITY, Upper({})):
                assert policy.is_mm2_internal_topic(topic) is mm2
                assert policy.is_internal_topic(topic) is internal


def test_heartbeats_topics_are_known_over_any_number_of_hops() -> None:
    for topic, heartbeats in [
        ("heartbeats", True),
        ("A.heartbeats", True),
        ("B.A.heartbeats", True),
        ("my-heartbeats", False),
        ("A.my-heartbeats", False),
        ("heartbeats.x", False),
        ("A_heartbeats", False),
    ]:
        assert DEFAULT.is_heartbeats_topic(topic) is heartbeats, topic
        assert IDENTITY.is_heartbeats_topic(topic) is heartbeats, topic


def test_the_identity_policy_keeps_names_and_calls_everything_its_sources() -> None:
    assert IDENTITY.format_remote_topic("A", "orders") == "orders"
    assert IDENTITY.topic_source("orders") == "A"
    assert IDENTITY.upstream_topic("orders") == "orders"
    assert IDENTITY.original_topic("B.orders") == "B.orders"
    assert IdentityReplicationPolicy({}).topic_source("orders") is None


def test_the_identity_policy_renames_whatever_ends_with_heartbeats() -> None:
    assert IDENTITY.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert IDENTITY.format_remote_topic("A", "my-heartbeats") == "A.my-heartbeats"
    assert IDENTITY.topic_source("B.heartbeats") == "B"
    assert IDENTITY.topic_source("heartbeats") is None
    assert IDENTITY.upstream_topic("B.A.heartbeats") == "A.heartbeats"


@given(topic=TOPICS, hops=st.lists(ALIASES, max_size=5))
def test_any_chain_of_hops_leads_back_to_the_original(topic: str, hops: list[str]) -> None:
    name = topic
    for alias in hops:
        name = DEFAULT.format_remote_topic(alias, name)
        assert DEFAULT.topic_source(name) == alias

    assert DEFAULT.original_topic(name) == topic


@given(topic=st.text("ab._-", max_size=12), separator=st.text("._-", max_size=3))
def test_source_separator_and_upstream_make_up_the_name(topic: str, separator: str) -> None:
    policy = DefaultReplicationPolicy({SEPARATOR: separator})
    source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)

    assert (source is None) == (upstream is None)
    if source is not None and upstream is not None:
        assert policy.format_remote_topic(source, upstream) == topic


def test_classes_are_found_by_java_name_or_python_path() -> None:
    assert policy_for(JAVA + "DefaultReplicationPolicy", {}) == DEFAULT
    assert policy_for(JAVA + "IdentityReplicationPolicy", {SOURCE_ALIAS: "A"}) == IDENTITY
    assert pickle.loads(pickle.dumps(IDENTITY)) == IDENTITY
    own = policy_for("mirror_lib.topology.policy.DefaultReplicationPolicy", {SEPARATOR: "_"})
    assert own.format_remote_topic("A", "t") == "A_t"


def test_a_policy_of_ones_own_gets_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    _importable(monkeypatch)

    policy = policy_for("company_naming.Upper", {"replication.policy.suffix": "!"})

    assert policy.format_remote_topic("A", "orders") == "ORDERS!"
    assert policy.checkpoints_topic("A") == "A.checkpoints.internal"


def test_a_class_that_cannot_be_used_is_a_configuration_error(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    _importable(monkeypatch)
    for name, says in [
        ("Upper", "not the full name"),
        ("org.apache.kafka.connect.mirror.LegacyReplicationPolicy", "does not exist"),
        ("com.example.Policy", "does not exist"),
        ("company_naming.Missing", "does not exist"),
        ("collections.OrderedDict", "is not a ReplicationPolicy"),
        ("company_naming.Broken", "could not be created"),
        ("", "not the full name"),
        (".Upper", "does not exist"),
    ]:
        with subtests.test(name):
            with pytest.raises(ConfigurationError, match=says) as caught:
                policy_for(name, {})
            assert "replication.policy.class" in str(caught.value)


def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    module = types.ModuleType("company_naming")
    module.Upper = Upper  # type: ignore[attr-defined]
    module.Broken = Broken  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "company_naming", module)
