"""Transforms as values."""

from __future__ import annotations

from mirror_lib.features.transforms.model import (
    Determinism,
    FlowTransforms,
    FunctionKind,
    FunctionReference,
    Influence,
    NonDeterminism,
    Transform,
)
from tests.support.fresh_imports import loaded_after

RANDOM = NonDeterminism("rand()", Influence.RANDOM)
UNSEEN = NonDeterminism("mask()", Influence.UNKNOWN)
FUNCTION = FunctionReference("company.masking", "mask", FunctionKind.ARROW)


def test_topics_are_java_regexes_for_whole_names_and_without_any_all_are_taken() -> None:
    assert Transform("all").takes("anything")
    assert Transform("all").matching_pattern("anything") is None

    transform = Transform("some", topics=("orders.*", "pay"))

    assert transform.takes("orders-eu")
    assert transform.takes("pay")
    assert not transform.takes("payments")
    assert transform.matching_pattern("pay") == "pay"
    assert transform.matching_pattern("payments") is None

    transform = Transform("some", topics=("(?i)orders", "pay"))

    assert transform.takes("PAY")
    assert transform.matching_pattern("PAY") == "(?i)orders, pay"

    assert not Transform("none", topics=()).takes("anything")


def test_a_topic_goes_through_the_transforms_that_take_it_in_their_order() -> None:
    one, two, three = Transform("one"), Transform("two", topics=("a",)), Transform("three", topics=("b",))
    flow = FlowTransforms((three, one, two))

    assert flow.of("a") == (one, two)
    assert flow.of("b") == (three, one)
    assert FlowTransforms((two,)).of("c") == ()


def test_what_spark_is_known_to_do_counts_more_than_what_is_said() -> None:
    for transform, expected in [
        (Transform("plain"), Determinism.YES),
        (Transform("random", non_determinism=(RANDOM,)), Determinism.NO),
        (Transform("said", non_determinism=(RANDOM,), stated_deterministic=True), Determinism.NO),
        (Transform("said", stated_deterministic=False), Determinism.NO),
        (Transform("user", non_determinism=(UNSEEN,)), Determinism.UNKNOWN),
        (Transform("user", non_determinism=(UNSEEN,), stated_deterministic=True), Determinism.YES),
        (Transform("function", function=FUNCTION), Determinism.UNKNOWN),
        (Transform("function", function=FUNCTION, non_determinism=(RANDOM,)), Determinism.NO),
        (
            Transform("function", function=FUNCTION, non_determinism=(RANDOM,), stated_deterministic=True),
            Determinism.YES,
        ),
    ]:
        assert transform.determinism is expected, transform


def test_the_values_need_neither_spark_nor_a_sql_parser() -> None:
    code = "import mirror_lib.features.transforms.model, mirror_lib.planning.record_paths"

    assert loaded_after(code, ("pyspark", "sqlglot", "pydantic")) == []
