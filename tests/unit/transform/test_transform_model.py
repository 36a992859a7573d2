"""Transforms as values."""

from __future__ import annotations

import pickle
import subprocess
import sys

from mirror_lib.transform.model import (
    ColumnExpressions,
    DataFormat,
    DecodeSettings,
    Decoding,
    Determinism,
    FlowTransforms,
    FunctionKind,
    FunctionReference,
    Influence,
    NonDeterminism,
    SchemaRegistry,
    SelectStatement,
    Transform,
)

RANDOM = NonDeterminism("rand()", Influence.RANDOM)
UNSEEN = NonDeterminism("mask()", Influence.UNKNOWN)
FUNCTION = FunctionReference("company.masking", "mask", FunctionKind.ARROW)


def test_the_columns_that_are_set_come_in_one_order() -> None:
    columns = ColumnExpressions(topic="'a'", key="upper(key)")

    assert list(columns) == [("key", "upper(key)"), ("topic", "'a'")]
    assert columns
    assert not ColumnExpressions()


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


def test_reasons_and_paths_read_well_and_no_password_is_printed() -> None:
    assert str(RANDOM) == "rand() depends on chance"
    assert str(UNSEEN) == "the dependencies of mask() are unknown"
    assert str(FUNCTION) == "company.masking:mask"
    assert str(FunctionReference("company.masking", "mask", FunctionKind.DATAFRAME)) == "company.masking.mask"

    registry = SchemaRegistry(("http://registry:8081",), "me", "hunter2")

    assert "hunter2" not in repr(FlowTransforms((), registry))


def test_transforms_pickle() -> None:
    flow = FlowTransforms(
        (
            Transform(
                "mask",
                topics=("orders.*",),
                decode=DecodeSettings(value=Decoding(DataFormat.JSON, "a STRING")),
                select=SelectStatement("mask.sql", "SELECT key FROM records", ("key",)),
                function=FUNCTION,
                columns=ColumnExpressions(value="value"),
                non_determinism=(RANDOM,),
            ),
        ),
        SchemaRegistry(("http://registry:8081",)),
    )

    assert pickle.loads(pickle.dumps(flow)) == flow
    assert flow.files == ("mask.sql",)


def test_the_values_need_neither_spark_nor_a_sql_parser() -> None:
    code = (
        "import sys, mirror_lib.transform.model, mirror_lib.transform.paths\n"
        "print([name for name in ('pyspark', 'sqlglot', 'pydantic') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
