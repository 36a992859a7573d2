"""Topic selection and naming of a flow, after the cases of `MirrorSourceConnectorTest` and `MirrorClientTest`.

Loops over several flows.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError
from mirror_lib.topology.filters import DefaultTopicFilter
from mirror_lib.topology.flow_topology import Exclusion, FlowTopology, ancestry, hops
from mirror_lib.topology.handovers import NO_HANDOVERS, UNRESTRICTED, Handovers
from mirror_lib.topology.loops import find_loops
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import (
    SOURCE_ALIAS,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)
from mirror_lib.topology.rename import NameFault, RenameRules

FLOW = FlowId("source", "target")
DEFAULT = DefaultReplicationPolicy({})
IDENTITY = IdentityReplicationPolicy({SOURCE_ALIAS: "source"})
EXCLUDE = r".*[\-\.]internal, .*\.replica, __.*"


def topology(
    *,
    policy: ReplicationPolicy = DEFAULT,
    topics: str = ".*",
    exclude: str = EXCLUDE,
    rename: RenameRules | None = None,
    heartbeats: bool = True,
) -> FlowTopology:
    return FlowTopology(
        flow=FLOW,
        policy=policy,
        topic_filter=DefaultTopicFilter({"topics": topics, "topics.exclude": exclude}),
        rename=rename or RenameRules(),
        heartbeats_replication_enabled=heartbeats,
    )


def test_topics_are_selected_as_mm2_selects_them() -> None:
    for topic, exclusion in [
        ("topic1", None),
        ("heartbeats", None),
        ("us-west.heartbeats", None),
        ("other.topic1", None),
        ("target.topic1", Exclusion.CYCLE),
        ("target.source.topic1", Exclusion.CYCLE),
        ("source.target.topic1", Exclusion.CYCLE),
        ("x.target.source.topic1", Exclusion.CYCLE),
        ("target.heartbeats", Exclusion.CYCLE),
        ("source.topic1", None),
        ("source.source.topic1", None),
        ("__consumer_offsets", Exclusion.INTERNAL),
        ("mm2-offset-syncs.target.internal", Exclusion.INTERNAL),
        ("source.checkpoints.internal", Exclusion.INTERNAL),
        ("orders.replica", Exclusion.FILTERED),
        ("orders.internal", Exclusion.FILTERED),
        ("target", None),
        ("target.", None),
    ]:
        assert topology().exclusion(topic) is exclusion, topic
        assert topology().replicates(topic) is (exclusion is None), topic
    # The filter decides about users' own topics, however internal they look.
    assert topology(exclude="").replicates("orders.internal")
    assert topology(exclude="").exclusion("mm2-x.internal") is Exclusion.INTERNAL


def test_heartbeats_pass_the_filter_and_nothing_else() -> None:
    narrow = topology(topics="orders")

    assert narrow.replicates("heartbeats")
    assert narrow.replicates("other.heartbeats")
    assert not narrow.replicates("my-heartbeats")
    assert not narrow.replicates("target.heartbeats")
    assert not topology(topics="orders", heartbeats=False).replicates("heartbeats")
    assert topology(topics="heartbeats", heartbeats=False).replicates("heartbeats")


def test_the_identity_policy_sees_cycles_of_heartbeats_only() -> None:
    identity = topology(policy=IDENTITY)

    assert identity.replicates("target.topic1")
    assert not identity.replicates("target.heartbeats")
    assert identity.replicates("source.heartbeats")
    assert identity.remote_topic("topic1") == "topic1"
    assert identity.remote_topic("heartbeats") == "source.heartbeats"
    assert ancestry(IDENTITY, "orders") == ("source",)
    assert hops(IDENTITY, "orders", "other") is None


HOME = RenameRules(explicit={"target.orders": "orders", "target.payments": "other", "target.east.stock": "stock"})


def test_a_flow_back_takes_copies_of_the_target_that_a_rule_leads_home() -> None:
    for topic, exclusion in [
        ("target.orders", None),
        # Neither its name there, nor the name of the target's own topic.
        ("target.payments", Exclusion.CYCLE),
        ("target.east.stock", Exclusion.CYCLE),
        ("target.more", Exclusion.CYCLE),
    ]:
        back = replace(topology(rename=HOME), failback=True, handovers=UNRESTRICTED)

        assert back.exclusion(topic) is exclusion, topic
        assert topology(rename=HOME).exclusion(topic) is Exclusion.CYCLE, topic
        # Only what a cutover has moved: before that the flow there copies it.
        moved = Handovers(here=frozenset({topic}))
        assert replace(back, handovers=NO_HANDOVERS).exclusion(topic) is (exclusion or Exclusion.NOT_HANDED_OVER), topic
        assert replace(back, handovers=moved).exclusion(topic) is exclusion, topic


def test_with_moved_topics_a_flow_selects_what_it_copied_before_cutovers() -> None:
    forward = replace(topology(topics="orders, payments"), handovers=Handovers(away=frozenset({"orders"})))

    assert [forward.with_moved_topics().replicates(topic) for topic in ("orders", "payments", "other")] == [
        True,
        True,
        False,
    ]


def test_with_moved_topics_a_failback_flow_selects_only_what_cutovers_have_ever_given_it() -> None:
    # It copies `here`, and copied `back-again` until the failback.
    handovers = Handovers(here=frozenset({"here"}), away=frozenset({"back-again"}))
    back = replace(topology(policy=IDENTITY), failback=True, handovers=handovers)

    found = back.with_moved_topics()

    assert [found.exclusion(topic) for topic in ("here", "back-again", "never")] == [
        None,
        None,
        Exclusion.NOT_HANDED_OVER,
    ]


class PingPong(DefaultReplicationPolicy):
    """Two names that call each other their upstream."""

    def topic_source(self, topic: str) -> str | None:
        return "elsewhere"

    def upstream_topic(self, topic: str) -> str | None:
        return "b" if topic == "a" else "a"


def test_a_policy_that_runs_in_circles_ends() -> None:
    circling = topology(policy=PingPong({}))

    assert circling.replicates("a")
    assert PingPong({}).original_topic("a") == "b"
    assert ancestry(PingPong({}), "a") == ("elsewhere",)


ALIAS = st.sampled_from(["source", "target", "east", "west"])


@given(st.lists(ALIAS, max_size=5))
def test_a_topic_is_a_cycle_exactly_when_the_target_is_among_its_hops(chain: list[str]) -> None:
    name = "orders"
    for alias in chain:
        name = DEFAULT.format_remote_topic(alias, name)

    assert topology().is_cycle(name) is ("target" in chain)
    assert topology().exclusion(name) is (Exclusion.CYCLE if "target" in chain else None)


@given(st.lists(st.sampled_from(["c1", "c2", "c3", "c4"]), unique=True))
def test_hops_count_the_copies(chain: list[str]) -> None:
    name = "heartbeats"
    for alias in chain:
        name = DEFAULT.format_remote_topic(alias, name)

    assert ancestry(DEFAULT, name) == tuple(reversed(chain))
    assert [hops(DEFAULT, name, alias) for alias in reversed(chain)] == list(range(1, len(chain) + 1))
    assert hops(DEFAULT, name, "nowhere") is None


def test_names_are_explicit_before_regex_before_policy() -> None:
    rules = RenameRules({"orders": "sales"}, "o(.*)", "x$1")
    renamed = topology(rename=rules)

    assert renamed.remote_topic("orders") == "sales"
    assert renamed.remote_topic("others") == "xthers"
    assert renamed.remote_topic("payments") == "source.payments"
    # Heartbeats are renamed only by name.
    assert topology(rename=RenameRules(pattern=".*", replacement="x")).remote_topic("heartbeats") == "source.heartbeats"
    assert topology(rename=RenameRules({"heartbeats": "pulse"})).remote_topic("heartbeats") == "pulse"
    limited = renamed.include_only(["a"])
    assert pickle.loads(pickle.dumps(limited)) == limited


def test_checkpoints_of_topics_from_the_target_speak_of_the_original() -> None:
    assert topology().checkpointed_topic("orders") == "source.orders"
    assert topology().checkpointed_topic("target.orders") == "orders"


def test_a_limited_run_takes_no_more_than_the_flow() -> None:
    limited = topology(exclude="secret").include_only(["orders", "s.*"])

    assert limited.replicates("orders")
    assert limited.replicates("sales")
    assert limited.exclusion("payments") is Exclusion.NOT_REQUESTED
    assert limited.exclusion("secret") is Exclusion.FILTERED
    assert limited.exclusion("heartbeats") is Exclusion.NOT_REQUESTED
    assert not limited.include_only(["sales"]).replicates("orders")
    assert not topology().include_only([]).replicates("orders")
    with pytest.raises(ConfigurationError, match="flow source->target: the run cannot be limited"):
        topology().include_only(["(a"])


def test_the_name_table_knows_what_is_reserved() -> None:
    rules = RenameRules({"a": "heartbeats", "b": "__consumer_offsets", "c": "source.checkpoints.internal"})
    built = topology(rename=rules).name_table({"a": 1, "b": 1, "c": 1, "d": 1})

    assert [finding.fault for finding in built.findings] == [NameFault.RESERVED] * 3
    assert built.targets["d"] == "source.d"
    # With its prefix a name can be too long.
    too_long = topology().name_table({"x" * 242: 1, "y" * 243: 1})
    assert [finding.target[7:8] for finding in too_long.findings] == ["y"]


class TestAChoiceThatSelectsNothing:
    LISTED = ("orders", "payments", "__consumer_offsets", "target.loop")

    def test_given_no_choice_or_one_topic_that_is_taken_then_nothing_is_refused(self) -> None:
        topology(topics="nothing").refuse_empty_choice(self.LISTED)
        for chosen in (["orders"], ["nowhere", "pay.*"]):
            topology().include_only(chosen).refuse_empty_choice(self.LISTED)

    def test_given_none_that_is_taken_then_it_is_refused_with_why(self, subtests: pytest.Subtests) -> None:
        narrow = topology(topics="orders")
        for flow, chosen, told in [
            (narrow, "ordres", "and the source has no such topic"),
            (narrow, "__consumer_offsets", r"__consumer_offsets \(internal\)"),
            (narrow, "target.*", r"target\.loop \(cycle\)"),
            (narrow, "payments", r"payments \(filtered\)"),
            (replace(topology(), handovers=Handovers(away=frozenset({"orders"}))), "orders", r"orders \(handed over\)"),
        ]:
            with subtests.test(chosen), pytest.raises(ConfigurationError, match=told):
                flow.include_only([chosen]).refuse_empty_choice(self.LISTED)

    def test_given_thousands_of_names_then_the_error_shows_the_first_ones(self) -> None:
        given = topology(topics="orders").include_only([f"no-such-topic-{number}" for number in range(9_000)])

        with pytest.raises(ConfigurationError, match=r"no-such-topic-0.*\.\.\., and the source has no such") as caught:
            given.refuse_empty_choice(self.LISTED)

        assert len(str(caught.value)) < 700


def flow(
    text: str, *, identity: bool = False, topics: str = ".*", rename: dict[str, str] | None = None
) -> FlowTopology:
    name = FlowId.parse(text)
    kind = IdentityReplicationPolicy if identity else DefaultReplicationPolicy
    return FlowTopology(
        flow=name,
        policy=kind({SOURCE_ALIAS: name.source}),
        topic_filter=DefaultTopicFilter({"topics": topics}),
        rename=RenameRules(rename or {}),
    )


def loops(*flows: FlowTopology, topics: dict[str, list[str]]) -> list[str]:
    return [str(loop) for loop in find_loops(flows, topics)]


def test_names_that_come_back_loop_and_each_loop_is_found_once() -> None:
    both = (flow("A->B", identity=True), flow("B->A", identity=True))
    apart = (flow("A->B", identity=True, topics="a.*"), flow("B->A", identity=True, topics="b.*"))
    renamed = (flow("A->B", topics="x", rename={"x": "y"}), flow("B->A", topics="y", rename={"y": "x"}))
    ring_and_outside = [flow(text, identity=True) for text in ("A->B", "B->C", "C->A", "D->A")]

    assert loops(*both, topics={"A": ["orders"]}) == ["orders on A -> orders on B -> orders on A"]
    assert len(loops(*both, topics={"A": ["orders"], "B": ["orders"]})) == 1
    assert loops(*apart, topics={"A": ["a1", "b1"], "B": ["a1", "b1"]}) == []
    assert loops(*renamed, topics={"A": ["x"]}) == ["x on A -> y on B -> x on A"]
    assert loops(*ring_and_outside, topics={"D": ["t"]}) == ["t on A -> t on B -> t on C -> t on A"]


def test_an_alias_that_contains_the_separator_grows_names_for_ever() -> None:
    both = (flow("us.west->eu"), flow("eu->us.west"))

    found = find_loops(both, {"us.west": ["t"]})

    assert found == ()

    both = (flow("us.west->eu.north"), flow("eu.north->us.west"))

    found = find_loops(both, {"us.west": ["t"]})

    assert [loop.closed for loop in found] == [False]
    assert str(found[0]).startswith("t on us.west -> us.west.t on eu.north -> eu.north.us.west.t on us.west")
    assert str(found[0]).endswith(" -> and so on")


@given(
    st.sampled_from(["orders", "heartbeats"]),
    st.sets(st.sampled_from(["A->B", "B->A", "A->C", "C->A", "B->C", "C->B"])),
)
def test_the_default_policy_never_loops(topic: str, names: set[str]) -> None:
    flows = [flow(name) for name in sorted(names)]

    assert find_loops(flows, {alias: [topic] for alias in "ABC"}) == ()
