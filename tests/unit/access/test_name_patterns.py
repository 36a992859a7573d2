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


def test_the_names_that_a_regex_matches_are_covered() -> None:
    for regex, covered_by in {
        "orders": [literal("orders")],
        "orders.eu": [literal("orders.eu")],
        r"orders\.eu": [literal("orders.eu")],
        r"\Qorders.eu\E": [literal("orders.eu")],
        "^orders$": [literal("orders")],
        ".*": [EVERYTHING],
        ".+": [EVERYTHING],
        ".*-events": [EVERYTHING],
        "(a|b)-events": [EVERYTHING],
        "[ab]-events": [EVERYTHING],
        "orders.*": [prefix_pattern("orders")],
        r"orders\..*": [prefix_pattern("orders.")],
        "orders-(eu|us)": [prefix_pattern("orders-")],
        r"orders-\d+": [prefix_pattern("orders-")],
        "orders?": [prefix_pattern("order")],
        "orders*": [prefix_pattern("order")],
        "orders+": [prefix_pattern("orders")],
        "orders{0,2}": [prefix_pattern("order")],
        "a|b.*": [literal("a"), prefix_pattern("b")],
        "a|.*": [EVERYTHING],
        "orders|orders.*": [prefix_pattern("orders")],
        r"a\|b": [literal("a|b")],
        "orders|": [literal("orders")],
        "|": [],
        "^$": [],
    }.items():
        assert sorted(names_of(regex)) == sorted(covered_by), regex


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


_IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_NO_HEARTBEATS = "heartbeats.replication.enabled = false"


@pytest.mark.parametrize(
    ("lines", "sources", "targets"),
    [
        pytest.param((), (EVERYTHING,), (prefix_pattern("A."),), id="all topics"),
        pytest.param(
            ("topics = orders, payments",),
            (literal("heartbeats"), literal("orders"), literal("payments")),
            (literal("A.heartbeats"), literal("A.orders"), literal("A.payments")),
            id="named topics and heartbeats",
        ),
        pytest.param(
            ("topics = orders, __consumer_offsets", _NO_HEARTBEATS),
            (literal("orders"),),
            (literal("A.orders"),),
            id="excluded topics",
        ),
        pytest.param(
            ("topics = orders.*", "replication.policy.separator = _", _NO_HEARTBEATS),
            (prefix_pattern("orders"),),
            (prefix_pattern("A_orders"),),
            id="a prefix behind the alias and separator",
        ),
        # Heartbeats alone get the alias, and `shop-heartbeats` is taken for some.
        pytest.param(
            (_IDENTITY, "topics = orders, shop-.*"),
            (literal("heartbeats"), literal("orders"), prefix_pattern("shop-")),
            (literal("A.heartbeats"), literal("orders"), prefix_pattern("A.shop-"), prefix_pattern("shop-")),
            id="the identity policy",
        ),
        pytest.param((_IDENTITY,), (EVERYTHING,), (EVERYTHING,), id="the identity policy and all topics"),
        pytest.param(
            (
                "mirror.topics.rename = orders:sales",
                "mirror.topics.rename.regex = eu-(.*)",
                "mirror.topics.rename.replacement = europe-$1",
            ),
            (EVERYTHING,),
            (literal("sales"), prefix_pattern("A."), prefix_pattern("europe-")),
            id="renames",
        ),
        pytest.param(
            ("mirror.topics.rename.regex = (.*)-eu", "mirror.topics.rename.replacement = $1"),
            (EVERYTHING,),
            (EVERYTHING,),
            id="a replacement that begins with a group",
        ),
    ],
)
def test_topics_of_both_sides_are_covered(
    config_with: Callable[..., MirrorConfig],
    lines: tuple[str, ...],
    sources: tuple[NamePattern, ...],
    targets: tuple[NamePattern, ...],
) -> None:
    flow = config_with(*lines).flow("A->B")

    assert (source_topics(flow), target_topics(flow)) == (sources, targets)


def test_groups_are_covered_as_topics_are(config_with: Callable[..., MirrorConfig]) -> None:
    flow = config_with("groups = billing, shop-.*").flow("A->B")

    assert groups(flow) == (literal("billing"), prefix_pattern("shop-"))
    assert named_groups(flow) == {"billing"}


def test_only_names_are_known_without_asking_the_cluster(config_with: Callable[..., MirrorConfig]) -> None:
    assert named_topics(config_with("topics = orders, shop-.*, __x").flow("A->B")) == {"orders"}
    assert named_topics(config_with().flow("A->B")) == set()


def test_names_are_certain_where_a_regex_has_no_metacharacter() -> None:
    for regex, plain, supposed in (
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
    ):
        assert plain_names([regex]) == plain, regex
        assert supposed_names([regex], ()) == supposed, regex
    # A dot that stands for another character.
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
