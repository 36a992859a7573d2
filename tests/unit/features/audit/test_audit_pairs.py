"""The copy of a topic is found by names, and what cannot be decided is said."""

from __future__ import annotations

from mirror_lib.features.audit.pairs import Pairing, TopicPair, pair_topics


def paired(source: list[str], target: list[str], **options: object) -> Pairing:
    """All topics, paired by their names."""
    return pair_topics(source, target, **{"selected": lambda _: True, **options})  # type: ignore[arg-type]


def test_given_a_topic_of_the_same_name_then_it_is_the_copy_and_else_the_only_one_with_that_end() -> None:
    found = paired(["orders", "a.b", "lost"], ["orders", "A.orders", "old.a.b", "x.b"])

    assert found.pairs == (TopicPair("a.b", "old.a.b"), TopicPair("orders", "orders"))
    assert (found.alone, found.ambiguous) == (("lost",), {})


def test_given_two_possible_copies_then_neither_is_chosen_until_it_is_named() -> None:
    target = ["A.orders", "B.orders"]

    assert paired(["orders"], target).ambiguous == {"orders": ("A.orders", "B.orders")}
    named = paired(["orders"], target, named=[TopicPair("orders", "B.orders")])
    assert (named.pairs, named.ambiguous) == ((TopicPair("orders", "B.orders"),), {})


def test_given_topics_of_kafka_and_of_replicators_then_they_are_not_compared() -> None:
    own = ["__consumer_offsets", "mm2-offset-syncs.B.internal", "A.checkpoints.internal", "heartbeats", "A.heartbeats"]

    assert paired(own, own) == Pairing(())


def test_given_a_users_topic_that_ends_like_an_internal_one_then_it_is_compared() -> None:
    """KIP-1074: only the names of MirrorMaker's own topics are internal."""
    assert paired(["pay.internal"], ["pay.internal"]).pairs == (TopicPair("pay.internal", "pay.internal"),)


def test_given_the_names_of_a_flow_then_others_are_no_copies() -> None:
    found = paired(["orders", "lost"], ["orders", "A.orders"], copy_of=lambda topic: f"A.{topic}")

    assert (found.pairs, found.alone) == ((TopicPair("orders", "A.orders"),), ("lost",))
