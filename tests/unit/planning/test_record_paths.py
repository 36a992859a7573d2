"""The way of each topic's records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.model import NO_TRANSFORMS, FlowTransforms, Transform
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.model import ChainSettings, RegexRouter, Stage
from mirror_lib.planning.record_paths import Path, TopicPath, topic_paths

DROP_TESTS = Transform("drop-tests", topics=("orders.*", "payments"))
MASK = Transform("mask")


def only(topic: str, transforms: FlowTransforms) -> TopicPath:
    (path,) = topic_paths([topic], transforms)
    return path


def test_a_topic_without_a_transform_of_its_own_is_copied_as_it_is() -> None:
    path = only("orders", NO_TRANSFORMS)

    assert path == TopicPath("orders", Path.RAW_COPY, (), "the flow has no transforms")
    assert str(path) == "orders: raw copy (the flow has no transforms)"

    path = only("logs", FlowTransforms((DROP_TESTS,)))

    assert path.path is Path.RAW_COPY
    assert str(path) == "logs: raw copy (no transform selects it: drop-tests)"


def test_heartbeats_are_left_alone_unless_a_transform_names_them() -> None:
    named = Transform("named", topics=("heartbeats",))

    def paths(*transforms: Transform) -> tuple[TopicPath, ...]:
        return topic_paths(
            ["heartbeats"], FlowTransforms(transforms), is_heartbeats=lambda topic: topic == "heartbeats"
        )

    assert paths(MASK)[0].path is Path.RAW_COPY
    assert paths(MASK, named)[0].transforms == ("named",)


def test_transforms_of_connect_take_all_topics_heartbeats_too_and_come_first() -> None:
    chain = SmtChain(ChainSettings((Stage("route", RegexRouter("(.*)", "$1-copy")),)))
    flow = FlowTransforms((DROP_TESTS, MASK), smt=chain)

    orders, heartbeats = topic_paths(["orders", "heartbeats"], flow, lambda topic: topic == "heartbeats")

    assert orders.transforms == ("route", "drop-tests", "mask")
    assert orders.reason.startswith("Connect's transforms apply to all topics; drop-tests applies to orders.*")
    assert heartbeats.transforms == ("route",)


def test_what_is_not_the_same_each_time_says_how_often_its_records_arrive() -> None:
    by_chance = FlowTransforms((Transform("t", stated_deterministic=False),))

    (at_least_once,) = topic_paths(["orders"], by_chance)
    (in_transactions,) = topic_paths(["orders"], by_chance, transactions=True)

    assert "at least once" in at_least_once.reason
    assert "in transactions" in in_transactions.reason
    assert "at least once" not in in_transactions.reason

    (path,) = topic_paths(["orders"], FlowTransforms((MASK,)), transactions=True)

    assert "transactions" not in path.reason


def test_topics_that_share_a_target_are_written_in_transactions_where_they_are_enabled() -> None:
    merged = ("orders", "sales")

    orders, other = topic_paths(("orders", "other"), NO_TRANSFORMS, transactions=True, merged=merged)
    (without,) = topic_paths(("orders",), NO_TRANSFORMS, merged=merged)

    assert (orders.path, orders.transforms) == (Path.TRANSFORM, ())
    assert "in transactions" in orders.reason
    assert (other.path, without.path) == (Path.RAW_COPY, Path.RAW_COPY)


@given(st.lists(st.text(alphabet="abc.-", min_size=1)), st.lists(st.sampled_from(["a.*", "b", "[ab]c*", ".*"])))
def test_every_topic_has_exactly_one_way_that_agrees_with_its_transforms(
    topics: list[str], patterns: list[str]
) -> None:
    flow = FlowTransforms(tuple(Transform(f"t{i}", topics=(pattern,)) for i, pattern in enumerate(patterns)))

    paths = topic_paths(topics, flow)

    assert [path.topic for path in paths] == topics
    for path in paths:
        assert path.transforms == tuple(transform.name for transform in flow.of(path.topic))
        assert (path.path is Path.TRANSFORM) == bool(path.transforms)
        assert path.reason
