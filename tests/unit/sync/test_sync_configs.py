"""What the rules want of topic configs, and the plan that comes of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.admin.client import ConfigEntry, ConfigOperation, ConfigOrigin, TopicConfigs
from mirror_lib.config.model import ConfigRules, FlowConfig
from mirror_lib.errors import ConfigurationError
from mirror_lib.sync.configs.plan import (
    ConfigDrift,
    ConfigFacts,
    ConfigPlan,
    ConfigRule,
    ConfigRulebook,
    ConfigStep,
    ConfigWinner,
    TopicConfigSteps,
    plan_configs,
)
from tests.support.flow_configs import FLOW, flow_config

SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
TOPIC, BROKER, CLUSTER = ConfigOrigin.TOPIC, ConfigOrigin.BROKER, ConfigOrigin.CLUSTER
BROKER_FILE, DEFAULT = ConfigOrigin.BROKER_FILE, ConfigOrigin.DEFAULT


def a_flow(rules: ConfigRules | None = None, **settings: Any) -> FlowConfig:
    return flow_config(config_rules=rules or ConfigRules(), **settings)


def configs(topic: str, *entries: ConfigEntry) -> TopicConfigs:
    return TopicConfigs(topic, {entry.name: entry for entry in entries})


def entry(value: str | None, origin: ConfigOrigin, name: str = "retention.ms", **more: bool) -> ConfigEntry:
    return ConfigEntry(name, value, origin, **more)


def plan(flow: FlowConfig, theirs: list[ConfigEntry], ours: list[ConfigEntry]) -> ConfigPlan:
    facts = ConfigFacts(
        sources={"A.t": "t"},
        source_configs={"t": configs("t", *theirs)},
        target_configs={"A.t": configs("A.t", *ours)},
    )
    return plan_configs(flow, facts)


def steps(flow: FlowConfig, theirs: ConfigEntry, ours: ConfigEntry) -> list[tuple[ConfigOperation, str | None]]:
    made = plan(flow, [theirs], [ours])
    return [(step.operation, step.new) for change in made.changes for step in change.steps]


def at_creation(flow: FlowConfig, *theirs: ConfigEntry) -> dict[str, str]:
    """What a new topic gets."""
    return ConfigRulebook(flow).at_creation(configs("t", *theirs))


def test_the_origin_on_the_source_decides_as_in_mm2() -> None:
    for origin, with_target_defaults, with_source_defaults in (
        (TOPIC, [(SET, "5")], [(SET, "5")]),
        (BROKER, [(SET, "5")], [(SET, "5")]),
        (CLUSTER, [(SET, "5")], [(SET, "5")]),
        (BROKER_FILE, [], []),
        (DEFAULT, [(DELETE, None)], [(SET, "5")]),
        (ConfigOrigin.OTHER, [], []),
    ):
        theirs, ours = entry("5", origin), entry("7", TOPIC)
        for defaults, expected in (("target", with_target_defaults), ("source", with_source_defaults)):
            flow = a_flow(use_defaults_from=defaults)
            assert steps(flow, theirs, ours) == expected, (origin, defaults)
            copied = {"retention.ms": "5"} if expected == [(SET, "5")] else {}
            assert at_creation(flow, theirs) == copied, (origin, defaults)


def test_what_is_read_only_or_sensitive_stays_alone() -> None:
    for hidden in ({"read_only": True}, {"sensitive": True}):
        for rules in (ConfigRules(), ConfigRules(always=("retention.ms",))):
            assert steps(a_flow(rules), entry("5", TOPIC, **hidden), entry("7", TOPIC)) == [], hidden
            assert at_creation(a_flow(rules), entry("5", TOPIC, **hidden)) == {}, hidden
    # Without a value it is hidden, too.
    assert at_creation(a_flow(), entry(None, TOPIC)) == {}


def test_mm2s_excluded_configs_are_neither_set_nor_deleted() -> None:
    for name in (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    ):
        for origin in (TOPIC, DEFAULT):
            assert steps(a_flow(), entry("1", origin, name), entry("2", TOPIC, name)) == [], name
            assert at_creation(a_flow(), entry("1", origin, name)) == {}, name


def test_a_list_of_exclusions_of_ones_own_replaces_mm2s() -> None:
    flow = a_flow(config_properties_exclude=(r"retention\..*",))

    assert steps(flow, entry("5", TOPIC), entry("7", TOPIC)) == []
    name = "min.insync.replicas"
    assert steps(flow, entry("2", TOPIC, name), entry("1", TOPIC, name)) == [(SET, "2")]


def test_nothing_is_sent_for_what_is_right_already() -> None:
    flow = a_flow()

    assert steps(flow, entry("5", TOPIC), entry("5", TOPIC)) == []
    assert steps(flow, entry("5", DEFAULT), entry("7", DEFAULT)) == []
    assert steps(flow, entry("5", DEFAULT), entry("7", BROKER_FILE)) == []
    # As MM2, so that a later change of the target's default does not reach the topic.
    assert steps(flow, entry("5", TOPIC), entry("5", DEFAULT)) == [(SET, "5")]
    assert plan(flow, [entry("5", TOPIC)], [entry("5", TOPIC)]) == ConfigPlan(FLOW, unchanged=1)


def test_never_leaves_alone_what_is_set_by_hand_on_the_target() -> None:
    flow = a_flow(ConfigRules(never=(r"retention\..*",), always=("retention.ms",), default=("retention.ms",)))

    assert steps(flow, entry("5", TOPIC), entry("7", TOPIC)) == []
    assert steps(flow, entry("5", DEFAULT), entry("7", TOPIC)) == []
    assert at_creation(flow, entry("5", TOPIC)) == {}


def test_always_copies_the_value_in_effect_even_if_it_is_excluded() -> None:
    flow = a_flow(ConfigRules(always=(r"min\.insync\.replicas",), default=(".*",)))
    name = "min.insync.replicas"

    for origin in (TOPIC, BROKER, CLUSTER, BROKER_FILE, DEFAULT):
        assert steps(flow, entry("2", origin, name), entry("1", DEFAULT, name)) == [(SET, "2")], origin
        assert at_creation(flow, entry("2", origin, name)) == {name: "2"}, origin


def test_default_removes_what_the_remote_topic_has_of_its_own() -> None:
    flow = a_flow(ConfigRules(default=("retention.ms",)))

    assert steps(flow, entry("5", TOPIC), entry("7", TOPIC)) == [(DELETE, None)]
    assert steps(flow, entry("5", TOPIC), entry("7", DEFAULT)) == []
    assert at_creation(flow, entry("5", TOPIC)) == {}


def test_an_override_goes_before_every_rule_and_sticks() -> None:
    rules = ConfigRules(override={"retention.ms": "9"}, never=(".*",), default=(".*",), always=(".*",))
    flow = a_flow(rules)

    assert steps(flow, entry("5", TOPIC), entry("7", TOPIC)) == [(SET, "9")]
    assert steps(flow, entry("5", TOPIC), entry("9", TOPIC)) == []
    assert at_creation(flow) == {"retention.ms": "9"}


def test_an_override_that_the_target_does_not_know_is_one_problem_and_the_rest_goes_on() -> None:
    flow = a_flow(ConfigRules(override={"retenton.ms": "9", "retention.ms": "9"}))

    made = plan(flow, [entry("5", TOPIC)], [entry("5", TOPIC)])

    assert [type(problem) for problem in made.problems] == [ConfigurationError]
    assert "retenton.ms" in str(made.problems[0])
    assert [step.name for change in made.changes for step in change.steps] == ["retention.ms"]


def test_a_config_that_the_targets_kafka_lacks_is_left_out_and_reported() -> None:
    """The cluster would refuse all changes of the topic for it."""
    old = entry("2.8-IV1", TOPIC, "message.format.version")

    made = plan(a_flow(), [old, entry("5", TOPIC)], [entry("7", TOPIC)])

    assert [step.name for change in made.changes for step in change.steps] == ["retention.ms"]
    reported = {row.name: row for row in made.drift}["message.format.version"]
    assert (reported.winner, reported.rule) == (ConfigWinner.TARGET, ConfigRule.UNKNOWN)


def test_the_plan_tells_old_and_new_values_and_the_rule() -> None:
    flow = a_flow(ConfigRules(override={"segment.ms": "9"}))
    theirs = [entry("5", TOPIC), entry("1", DEFAULT, "retention.bytes"), entry("3", DEFAULT, "segment.ms")]
    ours = [entry("7", DEFAULT), entry("2", TOPIC, "retention.bytes"), entry("3", DEFAULT, "segment.ms")]

    made = plan(flow, theirs, ours)

    expected = (
        ConfigStep("retention.bytes", DELETE, "2", None, ConfigRule.TARGET_DEFAULT),
        ConfigStep("retention.ms", SET, "7", "5", ConfigRule.SET_ON_TOPIC),
        ConfigStep("segment.ms", SET, "3", "9", ConfigRule.OVERRIDE),
    )
    assert made.changes == (TopicConfigSteps("A.t", "t", expected),)
    assert str(made).splitlines()[0].startswith("A.t: delete retention.bytes, now 2 (default on the source); set")


def test_the_drift_report_says_what_differs_and_who_wins() -> None:
    flow = a_flow(ConfigRules(never=("segment.ms",), override={"flush.ms": "9"}))
    names = ("segment.ms", "min.insync.replicas", "flush.ms", "retention.bytes", "max.message.bytes")
    origins = (TOPIC, TOPIC, TOPIC, DEFAULT, TOPIC)
    theirs = [entry("1", origin, name) for name, origin in zip(names, origins, strict=True)]
    ours = [entry("9" if name == "flush.ms" else "2", origins[at], name) for at, name in enumerate(names)]

    drift = {row.name: (row.winner, row.rule, row.planned) for row in plan(flow, theirs, ours).drift}

    assert drift == {
        "segment.ms": (ConfigWinner.TARGET, ConfigRule.NEVER, False),
        "min.insync.replicas": (ConfigWinner.TARGET, ConfigRule.EXCLUDED, False),
        "flush.ms": (ConfigWinner.OVERRIDE, ConfigRule.OVERRIDE, False),
        "retention.bytes": (ConfigWinner.TARGET_DEFAULT, ConfigRule.TARGET_DEFAULT, False),
        "max.message.bytes": (ConfigWinner.SOURCE, ConfigRule.SET_ON_TOPIC, True),
    }


def test_a_wrong_regex_or_filter_class_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"mirror\.configs\.never"):
        ConfigRulebook(a_flow(ConfigRules(never=("(",))))
    with pytest.raises(ConfigurationError, match=r"com\.example\.Filter"):
        ConfigRulebook(a_flow(config_property_filter_class="com.example.Filter"))


ORIGINS = st.sampled_from([TOPIC, BROKER, CLUSTER, BROKER_FILE, DEFAULT])
NAMES = ("retention.ms", "min.insync.replicas", "segment.ms", "flush.ms")
ENTRIES = st.tuples(*(st.tuples(st.sampled_from("123"), ORIGINS) for _ in NAMES)).map(
    lambda found: [ConfigEntry(name, *each) for name, each in zip(NAMES, found, strict=True)]
)
LISTS = st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)
RULES = st.builds(
    ConfigRules,
    override=st.dictionaries(st.sampled_from(NAMES), st.sampled_from("89"), max_size=1),
    never=LISTS,
    always=LISTS,
    default=LISTS,
)


@given(RULES, ENTRIES, ENTRIES, st.sampled_from(["source", "target"]))
def test_applying_a_plan_leaves_nothing_to_plan(
    rules: ConfigRules, theirs: list[ConfigEntry], ours: list[ConfigEntry], defaults: str
) -> None:
    flow = a_flow(rules, use_defaults_from=defaults)
    after = {each.name: each for each in ours}
    for change in plan(flow, theirs, ours).changes:
        for step in change.steps:
            # What a broker makes of it: set on the topic, or the cluster's own again.
            kept = ConfigEntry(step.name, step.new, TOPIC)
            after[step.name] = kept if step.operation is SET else ConfigEntry(step.name, "the cluster's", DEFAULT)

    again = plan(flow, theirs, list(after.values()))

    assert again.changes == ()
    assert not any(row.planned for row in again.drift)
    assert all(isinstance(row, ConfigDrift) for row in again.drift)
