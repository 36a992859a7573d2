"""The plan for a flow's target topics, and what applying it makes of the cluster's answers.

A flow that selects no topic is reported, since MM2 says nothing about it.

Waiting for new topics: patience is for a cluster that stands still, not for one that has much to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.admin.client import (
    ClusterAdmin,
    ConfigEntry,
    ConfigOrigin,
    PartitionDescription,
    TopicConfigs,
    TopicDescription,
    TopicSpec,
)
from mirror_lib.cluster.protocol.kafka_errors import RequestRefusedError, TopicExistsError
from mirror_lib.config.loader import load
from mirror_lib.config.model import ConfigRules, FlowConfig, Rename
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import AuthorizationError, MirrorError
from mirror_lib.sync.topics.empty_selection import about_empty_selection
from mirror_lib.sync.topics.plan import (
    CreateTopic,
    GrowPartitions,
    TopicFacts,
    TopicPlan,
    TopicResult,
    apply_plan,
    plan_topics,
)
from mirror_lib.sync.topics.waiting import wait_until_visible
from tests.support.flow_configs import FLOW, flow_config


def a_flow(**settings: Any) -> FlowConfig:
    return flow_config(**{"replication_factor": 1, **settings})


def a_topic(name: str, partitions: int) -> TopicDescription:
    return TopicDescription(
        name, "id", tuple(PartitionDescription(p, 1, "localhost", (1,), (1,)) for p in range(partitions))
    )


def topics(**partitions: int) -> dict[str, TopicDescription]:
    named = {name.replace("__", "."): count for name, count in partitions.items()}
    return {name: a_topic(name, count) for name, count in named.items()}


def some_configs(topic: str, *entries: ConfigEntry) -> TopicConfigs:
    return TopicConfigs(topic, {entry.name: entry for entry in entries})


def plan(
    flow: FlowConfig,
    sources: Mapping[str, TopicDescription],
    targets: Mapping[str, TopicDescription],
    configs: Mapping[str, TopicConfigs] | None = None,
    brokers: int | None = 3,
    unreadable: Mapping[str, MirrorError] | None = None,
) -> TopicPlan:
    return plan_topics(
        flow, flow_topology(flow), TopicFacts(sources, configs or {}, targets, brokers, unreadable or {})
    )


def test_a_missing_topic_is_created_with_the_sources_partitions_and_configs() -> None:
    configs = some_configs("orders", ConfigEntry("retention.ms", "1000", ConfigOrigin.TOPIC))
    made = plan(a_flow(), topics(orders=8), {}, {"orders": configs})
    assert made == TopicPlan(FLOW, create=(CreateTopic("A.orders", 8, 1, {"retention.ms": "1000"}),))


def test_a_target_with_fewer_partitions_is_grown_and_another_one_stays() -> None:
    grown = plan(a_flow(), topics(orders=8), topics(A__orders=3))
    assert grown == TopicPlan(FLOW, grow=(GrowPartitions("A.orders", 3, 8),))
    for present in (8, 9, 100):
        made = plan(a_flow(), topics(orders=8), topics(A__orders=present))
        assert made == TopicPlan(FLOW, unchanged=1), present
        assert made.changes == 0, present


def test_two_sources_with_one_target_are_a_conflict_and_the_others_go_on() -> None:
    flow = a_flow(rename=Rename(explicit={"a": "all", "b": "all"}))
    made = plan(flow, topics(a=1, b=1, c=1), {})
    assert [conflict.name for conflict in made.conflicts] == ["all"]
    assert "mirror.topics.merge.enabled" in made.conflicts[0].what
    assert made.conflicts[0].action
    assert [step.name for step in made.create] == ["A.c"]


def test_a_merge_creates_one_topic_with_the_first_sources_configs_if_they_have_as_many_partitions() -> None:
    flow = a_flow(rename=Rename(explicit={"a": "all", "b": "all"}, merge=True))
    configs = {
        "a": some_configs("a", ConfigEntry("retention.ms", "1", ConfigOrigin.TOPIC)),
        "b": some_configs("b", ConfigEntry("retention.ms", "2", ConfigOrigin.TOPIC)),
    }
    assert plan(flow, topics(a=4, b=4), {}, configs).create == (CreateTopic("all", 4, 1, {"retention.ms": "1"}),)
    made = plan(flow, topics(a=4, b=5), {})
    assert made.create == ()
    assert "a has 4, b has 5" in made.conflicts[0].what


def test_names_that_kafka_takes_for_the_same_are_a_conflict_only_while_one_is_missing() -> None:
    flow = a_flow(rename=Rename(explicit={"a": "x.y", "b": "x_y"}))
    sources = topics(a=1, b=1)
    assert [conflict.name for conflict in plan(flow, sources, {}).conflicts] == ["x.y", "x_y"]
    assert [conflict.name for conflict in plan(flow, sources, topics(x_y=1)).conflicts] == ["x.y"]
    assert plan(flow, sources, {**topics(x_y=1), **topics(x__y=1)}).conflicts == ()


def test_a_topic_of_the_target_that_the_flow_does_not_write_to_stands_in_the_way_of_a_similar_name() -> None:
    facts = TopicFacts(topics(orders__eu=1), {}, {}, target_names=frozenset({"A_orders_eu", "A.payments"}))

    made = plan_topics(a_flow(), flow_topology(a_flow()), facts)

    assert made.create == ()
    (conflict,) = made.conflicts
    assert conflict.name == "A.orders.eu"
    assert "A_orders_eu" in conflict.what


def test_a_topic_whose_records_went_to_another_one_is_not_called_deleted() -> None:
    copied = {"A.gone": "A.gone", "A.moved": "former.moved"}
    facts = TopicFacts(topics(gone=1, moved=1, new=1), {}, {}, target_brokers=1, copied=copied)

    made = plan_topics(a_flow(), flow_topology(a_flow()), facts)

    assert ([step.name for step in made.create], made.deleted) == (["A.new"], ("A.gone",))
    assert made.renamed == (("A.moved", "former.moved"),)
    about_gone, about_moved = made.about_undecided
    assert about_gone.startswith("A.gone was deleted")
    assert "former.moved" in about_moved
    assert "deleted" not in about_moved


def test_a_name_that_kafka_refuses_is_told_once_whatever_the_cluster_says_of_it() -> None:
    name = "o" * 248
    refused = RequestRefusedError("the request is not valid.", action="Something else.")
    for unreadable in ({}, {f"A.{name}": refused}):
        made = plan(a_flow(), {name: a_topic(name, 1)}, {}, unreadable=unreadable)
        (conflict,) = made.conflicts
        assert made.create == ()
        assert "249" in conflict.what


def test_more_replicas_than_brokers_is_a_conflict_for_new_topics_only() -> None:
    flow = a_flow(replication_factor=3)
    made = plan(flow, topics(new=1, old=2), topics(A__old=1), brokers=1)
    assert made.create == ()
    assert made.grow == (GrowPartitions("A.old", 1, 2),)
    assert made.conflicts[0].name == "A.new"
    assert "has 1 broker" in made.conflicts[0].what
    assert made.conflicts[0].action == "Set A->B.replication.factor to at most 1, or add brokers."


def test_a_topic_that_may_not_be_seen_is_a_conflict_and_not_created() -> None:
    denied = AuthorizationError("no access.", action="Grant it.")
    made = plan(a_flow(), topics(orders=1), {}, unreadable={"A.orders": denied})
    assert made.create == ()
    assert [(c.name, c.what, c.action) for c in made.conflicts] == [("A.orders", "no access.", "Grant it.")]


def test_a_plan_can_be_printed_and_is_json() -> None:
    flow = a_flow(rename=Rename(explicit={"a": "all", "b": "all"}))
    configs = {"new": some_configs("new", ConfigEntry("cleanup.policy", "compact", ConfigOrigin.TOPIC))}
    made = plan(flow, topics(a=1, b=1, new=2, old=3, same=1), topics(A__old=1, A__same=1), configs)
    lines = str(made).splitlines()
    assert lines[0] == "create A.new: 2 partitions, 1 replica, cleanup.policy=compact"
    assert lines[1] == "add partitions to A.old: from 1 to 3"
    assert lines[2].startswith("cannot set up all: a, b would all become all")
    assert lines[3] == "1 topic unchanged"
    assert json.loads(json.dumps(made.to_dict()))["grow"] == [{"name": "A.old", "present": 1, "wanted": 3}]


counts = st.dictionaries(st.text(ascii_lowercase, min_size=1, max_size=6), st.integers(1, 20), max_size=8)


@given(counts, counts)
def test_a_plan_is_complete_and_after_it_nothing_is_left_to_do(source: dict[str, int], target: dict[str, int]) -> None:
    sources = topics(**source)
    targets = {f"A.{name}": a_topic(f"A.{name}", count) for name, count in target.items()}
    made = plan(a_flow(), sources, targets)
    assert made.changes + made.unchanged == len(sources)
    after = {**targets}
    after |= {step.name: a_topic(step.name, step.partitions) for step in made.create}
    after |= {step.name: a_topic(step.name, step.wanted) for step in made.grow}
    assert plan(a_flow(), sources, after) == TopicPlan(FLOW, unchanged=len(sources))


class FakeTarget:
    """A cluster that answers as told and remembers what it was asked to do."""

    cluster = "B"

    def __init__(self, errors: Mapping[str, MirrorError], present: Mapping[str, TopicDescription]) -> None:
        self.errors, self.present = errors, dict(present)
        self.validated: list[bool] = []

    def create_topics(
        self, specs: Iterable[TopicSpec], *, validate_only: bool = False
    ) -> dict[str, MirrorError | None]:
        self.validated.append(validate_only)
        answers = {spec.name: self.errors.get(spec.name) for spec in specs}
        if not validate_only:
            self.present |= {s.name: a_topic(s.name, s.partitions) for s in specs if answers[s.name] is None}
        return answers

    def create_partitions(
        self, wanted: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, MirrorError | None]:
        self.validated.append(validate_only)
        answers = {name: self.errors.get(name) for name in wanted}
        if not validate_only:
            self.present |= {n: a_topic(n, count) for n, count in wanted.items() if answers[n] is None}
        return answers

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        return {name: self.present[name] for name in names if name in self.present}


CREATE = CreateTopic("A.new", 2, 1, {})
GROW = GrowPartitions("A.old", 1, 3)
PLAN = TopicPlan(FLOW, create=(CREATE, CreateTopic("A.denied", 1, 1, {})), grow=(GROW,))


def test_configs_that_the_targets_version_does_not_have_are_left_out_and_told() -> None:
    # message.format.version ended with Kafka 4.0 (KIP-724); CreateTopics refuses unknown names with INVALID_CONFIG.
    set_on_topic = [
        ConfigEntry(name, value, ConfigOrigin.TOPIC, False, False)
        for name, value in {"message.format.version": "2.0", "retention.ms": "1000"}.items()
    ]
    facts = TopicFacts(
        topics(old=1),
        {"old": some_configs("old", *set_on_topic)},
        {},
        3,
        target_config_names=frozenset({"retention.ms"}),
    )
    flow = a_flow()

    (step,) = plan_topics(flow, flow_topology(flow), facts).create

    assert step == CreateTopic("A.old", 1, 1, {"retention.ms": "1000"}, ("message.format.version",))
    assert str(step).endswith("without message.format.version, which the target does not support")


def test_an_override_that_the_target_does_not_know_is_left_to_the_targets_judgement() -> None:
    flow = a_flow(config_rules=ConfigRules(override={"retention.mz": "1"}))
    facts = TopicFacts(topics(t=1), {}, {}, 3, target_config_names=frozenset({"retention.ms"}))

    (step,) = plan_topics(flow, flow_topology(flow), facts).create

    assert (step.configs, step.unsupported) == ({"retention.mz": "1"}, ())


def test_one_topics_error_stops_no_other() -> None:
    denied = AuthorizationError("no.")
    target: Any = FakeTarget({"A.denied": denied}, {})
    assert apply_plan(PLAN, target) == (
        TopicResult(CREATE),
        TopicResult(PLAN.create[1], denied),
        TopicResult(GROW),
    )
    assert set(target.present) == {"A.new", "A.old"}


def test_what_somebody_else_did_in_the_meantime_is_no_error() -> None:
    errors = {
        "A.new": TopicExistsError("there."),
        "A.denied": TopicExistsError("there."),
        "A.old": RequestRefusedError("has 3."),
    }
    target: Any = FakeTarget(errors, topics(A__new=2, A__denied=1, A__old=3))
    assert [result.error for result in apply_plan(PLAN, target)] == [None, None, None]


def test_a_refused_growth_and_a_topic_that_somebody_else_made_with_fewer_partitions_are_errors() -> None:
    refused, there = RequestRefusedError("a policy forbids it."), TopicExistsError("there.")
    target: Any = FakeTarget({"A.old": refused, "A.new": there}, topics(A__old=1, A__new=1))
    created, _, grown = apply_plan(PLAN, target)
    assert (created, grown) == (TopicResult(CREATE, there), TopicResult(GROW, refused))


def test_validating_changes_nothing_and_waits_for_nothing() -> None:
    target: Any = FakeTarget({}, {})
    assert all(result.error is None for result in apply_plan(PLAN, target, validate_only=True))
    assert target.validated == [True, True]
    assert target.present == {}


def test_an_empty_plan_asks_the_cluster_nothing() -> None:
    target: Any = FakeTarget({}, {})
    assert apply_plan(TopicPlan(FLOW, unchanged=5), target) == ()
    assert target.validated == []


FILE = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"


def test_given_lists_that_select_nothing_then_one_sentence_says_so(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    for lines, topics, is_told in (
        ('A->B.topics = "orders"', ["heartbeats"], True),
        (r"A->B.topics = pay\d+", [], True),
        ("A->B.topics = orders", ["heartbeats", "orders"], False),
        ("A->B.topics = heartbeats", ["heartbeats"], False),
        ("", ["heartbeats"], False),
        ("A->B.topics =", ["heartbeats"], False),
    ):
        path.write_text(f"{FILE}{lines}\n")
        flow = load(path).flow("A->B")

        told = list(about_empty_selection(flow, flow_topology(flow), topics))

        assert bool(told) is is_told, lines
        assert all(each.endswith("with `mirror config show`.") for each in told)
        assert all("flow A->B selects no topic of cluster A" in each for each in told)


def test_given_a_command_for_some_topics_then_they_say_nothing_about_the_lists(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    path.write_text(f"{FILE}A->B.topics = orders\n")
    flow = load(path).flow("A->B")

    assert list(about_empty_selection(flow, flow_topology(flow, ["heartbeats"]), ["heartbeats"])) == []


_PATIENCE = 0.15


class _Admin:
    """A cluster on which one more topic is ready each time that it is asked, until none is any more."""

    cluster = "target"

    def __init__(self, ready_at_most: int) -> None:
        self._ready = 0
        self._most = ready_at_most

    def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        self._ready = min(self._ready + 1, self._most)
        leader = {name: 0 if int(name) < self._ready else None for name in names}
        return {name: _described(name, leader[name]) for name in names}


def _described(name: str, leader: int | None) -> TopicDescription:
    partition = PartitionDescription(partition=0, leader=leader, leader_host=None, replicas=(0,), isr=(0,))
    return TopicDescription(name=name, topic_id=None, partitions=(partition,))


def _topics(count: int) -> dict[str, int]:
    return {f"{number:02}": 1 for number in range(count)}


def test_given_a_cluster_that_gets_on_when_all_take_longer_than_patience_then_they_are_waited_for() -> None:
    # The pauses between looks grow to 0.2 s, so these take more than a second.
    admin = cast("ClusterAdmin", _Admin(ready_at_most=8))

    late = wait_until_visible(admin, _topics(8), seconds=_PATIENCE)

    assert late == {}


def test_given_a_cluster_that_stands_still_when_waited_for_then_what_is_missing_is_named() -> None:
    admin = cast("ClusterAdmin", _Admin(ready_at_most=2))

    late = wait_until_visible(admin, _topics(4), seconds=_PATIENCE)

    assert sorted(late) == ["02", "03"]
    assert late["02"].where.topic == "02"
