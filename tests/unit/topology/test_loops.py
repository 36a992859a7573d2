"""Loops over several flows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.topology.filters import DefaultTopicFilter
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.loops import find_loops
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import SOURCE_ALIAS, DefaultReplicationPolicy, IdentityReplicationPolicy
from mirror_lib.topology.rename import RenameRules


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
