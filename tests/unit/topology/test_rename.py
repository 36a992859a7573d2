"""Renames and the table of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import Where
from mirror_lib.topology.rename import NameFault, NameTable, RenameRules, illegal_name


def table(names: dict[str, str], *, merge: bool = False, partitions: dict[str, int] | None = None) -> NameTable:
    return NameTable.build(partitions or dict.fromkeys(names, 1), names.__getitem__, merge=merge)


def faults(built: NameTable) -> list[NameFault]:
    return [finding.fault for finding in built.findings]


def test_a_table_without_faults_is_sound() -> None:
    built = table({"a": "A.a", "b": "A.b"})
    merged = table({"a": "x", "b": "x"}, merge=True, partitions={"a": 3, "b": 3})

    assert built.findings == merged.findings == ()
    assert built.targets == {"a": "A.a", "b": "A.b"}
    assert built.sources_of("A.a") == ("a",)
    assert built.sources_of("other") == ()
    assert merged.sources_of("x") == ("a", "b")


def test_a_table_names_each_fault_with_its_topics() -> None:
    collision = table({"a": "x", "b": "x", "c": "y"})
    counts = table({"a": "x", "b": "x"}, merge=True, partitions={"a": 3, "b": 4})
    # Kafka refuses names that differ only in dot and underscore.
    similar = table({"a": "x.y", "b": "x_y"})
    several = table({"a": "x", "b": "x", "c": "no blanks", "d": "p.q", "e": "p_q"})

    for built, fault in (
        (collision, NameFault.COLLISION),
        (counts, NameFault.PARTITION_COUNTS),
        (similar, NameFault.SIMILAR),
    ):
        assert faults(built) == [fault]
        assert built.findings[0].sources == ("a", "b")
    assert collision.findings[0].target == "x"
    assert "a has 3, b has 4" in counts.findings[0].message
    assert faults(several) == [NameFault.ILLEGAL, NameFault.COLLISION, NameFault.SIMILAR]


def test_a_name_that_a_topic_of_the_target_stands_in_the_way_of_is_refused_and_one_that_exists_is_not() -> None:
    names = {"a": "x.y", "b": "p_q", "c": "other"}

    built = NameTable.build(
        dict.fromkeys(names, 1), names.__getitem__, existing={"x_y", "p_q", "p.q", "other", "un_like"}
    )

    assert [(found.fault, found.target, found.sources) for found in built.findings] == [
        (NameFault.SIMILAR, "x.y", ("a",))
    ]
    assert "x.y and x_y differ only in" in built.findings[0].message


def test_reserved_names_are_found() -> None:
    built = NameTable.build({"a": 1}, lambda _: "__consumer_offsets", reserved=lambda name: name.startswith("__"))

    assert faults(built) == [NameFault.RESERVED]


def test_faults_block_their_own_sources_only() -> None:
    errors = table({"a": "x", "b": "x", "c": "y"}).errors("A->B")

    assert sorted(errors) == ["a", "b"]
    assert errors["a"].where == Where(flow="A->B", topic="a")
    assert "a, b would all become x" in str(errors["b"])


def test_only_names_that_kafka_takes_are_legal() -> None:
    for name in ["a", "A.b_c-9", "x" * 249, "...", "_"]:
        assert illegal_name(name) is None, name
    for name in ["", ".", "..", "x" * 250, "a b", "é", "a/b", "a\n", "a:b"]:
        assert illegal_name(name), name


def test_explicit_and_regex_names() -> None:
    rules = RenameRules({"orders": "sales"}, r"legacy-(.+)", "$1.v2")

    assert rules.explicit_name("orders") == "sales"
    assert rules.explicit_name("legacy-x") is None
    assert rules.regex_name("legacy-x") == "x.v2"
    assert rules.regex_name("my-legacy-x") is None
    assert RenameRules().regex_name("x") is None


def test_wrong_rules_are_refused_when_made(subtests: pytest.Subtests) -> None:
    for pattern, replacement in [("(a", "b"), ("a", "$1"), ("a", None), (None, "a"), ("(?x)a", "b")]:
        with subtests.test(pattern=pattern), pytest.raises(ValueError):
            RenameRules(pattern=pattern, replacement=replacement)


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.sampled_from("xyz"), st.integers(1, 2)), max_size=6))
def test_a_table_without_findings_never_mixes_partition_counts_and_without_merge_is_one_to_one(
    topics: dict[str, tuple[str, int]],
) -> None:
    partitions = {topic: count for topic, (_, count) in topics.items()}

    strict = NameTable.build(partitions, lambda topic: topics[topic][0])
    merged = NameTable.build(partitions, lambda topic: topics[topic][0], merge=True)

    one_to_one = len(set(strict.targets.values())) == len(strict.targets)
    assert (strict.findings == ()) == one_to_one
    uniform = len({(target, count) for target, count in topics.values()}) == len({t for t, _ in topics.values()})
    assert (merged.findings == ()) == uniform
