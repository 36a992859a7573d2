"""Which ACL patterns cover what filters select."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.name_patterns import (
    EVERYTHING,
    NamePattern,
    groups,
    literal,
    named_groups,
    named_topics,
    names_of,
    plain_names,
    prefix_pattern,
    source_topics,
    supposed_groups,
    supposed_names,
    supposed_topics,
    target_topics,
)
from mirror_lib.topology.acls import AclPattern


@pytest.mark.parametrize(
    ("regex", "covered_by"),
    [
        ("orders", [literal("orders")]),
        ("orders.eu", [literal("orders.eu")]),
        (r"orders\.eu", [literal("orders.eu")]),
        (r"\Qorders.eu\E", [literal("orders.eu")]),
        ("^orders$", [literal("orders")]),
        (".*", [EVERYTHING]),
        (".+", [EVERYTHING]),
        (".*-events", [EVERYTHING]),
        ("(a|b)-events", [EVERYTHING]),
        ("[ab]-events", [EVERYTHING]),
        ("orders.*", [prefix_pattern("orders")]),
        (r"orders\..*", [prefix_pattern("orders.")]),
        ("orders-(eu|us)", [prefix_pattern("orders-")]),
        (r"orders-\d+", [prefix_pattern("orders-")]),
        ("orders?", [prefix_pattern("order")]),
        ("orders*", [prefix_pattern("order")]),
        ("orders+", [prefix_pattern("orders")]),
        ("orders{0,2}", [prefix_pattern("order")]),
        ("a|b.*", [literal("a"), prefix_pattern("b")]),
        ("a|.*", [EVERYTHING]),
        ("orders|orders.*", [prefix_pattern("orders")]),
        (r"a\|b", [literal("a|b")]),
        ("orders|", [literal("orders")]),
        ("|", []),
        ("^$", []),
    ],
)
def test_the_names_that_a_regex_matches_are_covered(regex: str, covered_by: list[NamePattern]) -> None:
    assert sorted(names_of(regex)) == sorted(covered_by)


_PIECES = st.sampled_from(["a", "b", "-", ".*", "[ab]", "(a|b)", "a?", "b+", "a*", r"\.", "|", "(ab)?", r"\w", "x{2}"])
#: Nothing in Kafka has an empty name.
_NAMES = st.text(alphabet="ab-.x", min_size=1, max_size=6)


@given(st.lists(_PIECES, min_size=1, max_size=6).map("".join), _NAMES)
def test_no_match_of_a_regex_is_left_out(regex: str, name: str) -> None:
    if re.fullmatch(regex, name):
        assert any(_holds(pattern, name) for pattern in names_of(regex)), (regex, name)


def _holds(pattern: NamePattern, name: str) -> bool:
    if pattern == EVERYTHING:
        return True
    return name.startswith(pattern.name) if pattern.pattern is AclPattern.PREFIXED else name == pattern.name


def _flow(config: MirrorConfig) -> tuple[tuple[NamePattern, ...], tuple[NamePattern, ...]]:
    flow = config.flow("A->B")
    return source_topics(flow), target_topics(flow)


def test_all_topics_need_all_of_the_source_and_a_prefix_of_the_target(
    config_with: Callable[..., MirrorConfig],
) -> None:
    assert _flow(config_with()) == ((EVERYTHING,), (prefix_pattern("A."),))


def test_named_topics_and_heartbeats_are_covered_by_name(config_with: Callable[..., MirrorConfig]) -> None:
    sources, targets = _flow(config_with("topics = orders, payments"))

    assert sources == (literal("heartbeats"), literal("orders"), literal("payments"))
    assert targets == (literal("A.heartbeats"), literal("A.orders"), literal("A.payments"))


def test_topics_that_are_excluded_need_nothing(config_with: Callable[..., MirrorConfig]) -> None:
    sources, _ = _flow(config_with("topics = orders, __consumer_offsets", "heartbeats.replication.enabled = false"))

    assert sources == (literal("orders"),)


def test_a_prefix_stays_a_prefix_behind_the_alias_and_separator(config_with: Callable[..., MirrorConfig]) -> None:
    sources, targets = _flow(
        config_with("topics = orders.*", "replication.policy.separator = _", "heartbeats.replication.enabled = false")
    )

    assert (sources, targets) == ((prefix_pattern("orders"),), (prefix_pattern("A_orders"),))


def test_the_identity_policy_keeps_names(config_with: Callable[..., MirrorConfig]) -> None:
    identity = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

    _, targets = _flow(config_with(identity, "topics = orders, shop-.*"))

    # Heartbeats alone get the alias, and `shop-heartbeats` is taken for some.
    assert targets == (literal("A.heartbeats"), literal("orders"), prefix_pattern("A.shop-"), prefix_pattern("shop-"))


def test_the_identity_policy_covers_everything_for_all_topics(config_with: Callable[..., MirrorConfig]) -> None:
    identity = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

    assert _flow(config_with(identity))[1] == (EVERYTHING,)


def test_renames_are_covered_by_what_they_give(config_with: Callable[..., MirrorConfig]) -> None:
    _, targets = _flow(
        config_with(
            "mirror.topics.rename = orders:sales",
            "mirror.topics.rename.regex = eu-(.*)",
            "mirror.topics.rename.replacement = europe-$1",
        )
    )

    assert targets == (literal("sales"), prefix_pattern("A."), prefix_pattern("europe-"))


def test_a_replacement_that_begins_with_a_group_may_be_anything(config_with: Callable[..., MirrorConfig]) -> None:
    _, targets = _flow(config_with("mirror.topics.rename.regex = (.*)-eu", "mirror.topics.rename.replacement = $1"))

    assert targets == (EVERYTHING,)


def test_groups_are_covered_as_topics_are(config_with: Callable[..., MirrorConfig]) -> None:
    flow = config_with("groups = billing, shop-.*").flow("A->B")

    assert groups(flow) == (literal("billing"), prefix_pattern("shop-"))
    assert named_groups(flow) == {"billing"}


def test_only_names_are_known_without_asking_the_cluster(config_with: Callable[..., MirrorConfig]) -> None:
    assert named_topics(config_with("topics = orders, shop-.*, __x").flow("A->B")) == {"orders"}
    assert named_topics(config_with().flow("A->B")) == set()


@pytest.mark.parametrize(
    ("regex", "plain", "supposed"),
    [
        ("orders", {"orders"}, set()),
        ("orders_eu-1", {"orders_eu-1"}, set()),
        (r"orders\.eu", {"orders.eu"}, set()),
        (r"\Qorders.eu\E", {"orders.eu"}, set()),
        ("^orders$", {"orders"}, set()),
        ("orders.eu", set(), {"orders.eu"}),
        (r"a\.b.c", set(), {"a.b.c"}),
        ("a|b.c|d.*", {"a"}, {"b.c"}),
        ("orders.*", set(), set()),
        ("orders|", {"orders"}, set()),
        ("orders?", set(), set()),
    ],
)
def test_names_are_certain_where_a_regex_has_no_metacharacter(regex: str, plain: set[str], supposed: set[str]) -> None:
    assert plain_names([regex]) == plain
    assert supposed_names([regex], ()) == supposed


def test_a_dot_that_stands_for_another_character_makes_no_name() -> None:
    assert supposed_names(["my.events"], ["my-events", "others"]) == set()
    assert supposed_names(["my.events"], ["my-events-2", "others"]) == {"my.events"}


def test_topics_and_groups_with_dots_are_only_supposed(config_with: Callable[..., MirrorConfig]) -> None:
    flow = config_with(r"topics = my.events, a\\.b, __x.y", "groups = my.group, billing").flow("A->B")

    assert named_topics(flow) == {"a.b"}
    assert named_groups(flow) == {"billing"}
    # Internal topics are excluded, whatever names them.
    assert supposed_topics(flow, ()) == {"my.events"}
    assert supposed_topics(flow, ["my-events"]) == set()
    assert supposed_groups(flow, ()) == {"my.group"}
    assert supposed_groups(flow, ["my-group"]) == set()
