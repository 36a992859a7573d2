"""Which right brings which other along."""

from __future__ import annotations

import pytest

from mirror_lib.topology.access import Grant, Operation, Resource, without_covered
from mirror_lib.topology.acls import AclPattern


def topic(operation: Operation, name: str, pattern: AclPattern = AclPattern.LITERAL) -> Grant:
    return Grant(Resource.TOPIC, name, pattern, operation)


PREFIXED = AclPattern.PREFIXED


@pytest.mark.parametrize(
    "operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE]
)
def test_these_operations_allow_describing(operation: Operation) -> None:
    assert topic(operation, "a").covers(topic(Operation.DESCRIBE, "a"))


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS])
def test_these_do_not(operation: Operation) -> None:
    assert not topic(operation, "a").covers(topic(Operation.DESCRIBE, "a"))


def test_altering_configs_allows_reading_them_and_not_the_other_way_round() -> None:
    read, alter = topic(Operation.DESCRIBE_CONFIGS, "a"), topic(Operation.ALTER_CONFIGS, "a")

    assert alter.covers(read)
    assert not read.covers(alter)


@pytest.mark.parametrize(
    ("one", "other", "covers"),
    [
        (topic(Operation.READ, "*"), topic(Operation.READ, "a"), True),
        (topic(Operation.READ, "*"), topic(Operation.READ, "a", PREFIXED), True),
        (topic(Operation.READ, "a", PREFIXED), topic(Operation.READ, "ab"), True),
        (topic(Operation.READ, "a", PREFIXED), topic(Operation.READ, "ab", PREFIXED), True),
        (topic(Operation.READ, "ab", PREFIXED), topic(Operation.READ, "a", PREFIXED), False),
        (topic(Operation.READ, "a"), topic(Operation.READ, "a", PREFIXED), False),
        (topic(Operation.READ, "a", PREFIXED), topic(Operation.READ, "*"), False),
        (topic(Operation.READ, "a"), topic(Operation.READ, "b"), False),
        (Grant.on_group(Operation.READ, "a"), topic(Operation.READ, "a"), False),
    ],
)
def test_patterns_hold_names_and_narrower_patterns(one: Grant, other: Grant, covers: bool) -> None:
    assert one.covers(other) is covers


def test_what_others_cover_is_left_out() -> None:
    read, describe = topic(Operation.READ, "a", PREFIXED), topic(Operation.DESCRIBE, "ab")

    assert without_covered([describe, read, read]) == (read,)


@pytest.mark.parametrize(
    ("grant", "words", "arguments"),
    [
        (topic(Operation.WRITE, "A.orders"), "WRITE on topic A.orders", ["Write", "--topic", "A.orders"]),
        (
            topic(Operation.DESCRIBE_CONFIGS, "A.", PREFIXED),
            "DESCRIBE_CONFIGS on topics that begin with A.",
            ["DescribeConfigs", "--topic", "A.", "--resource-pattern-type", "prefixed"],
        ),
        (topic(Operation.READ, "*"), "READ on all topics", ["Read", "--topic", "*"]),
        (Grant.on_group(Operation.READ, "g"), "READ on group g", ["Read", "--group", "g"]),
        (
            Grant.on_transactional_id(Operation.WRITE, "mirror:x"),
            "WRITE on transactional id mirror:x",
            ["Write", "--transactional-id", "mirror:x"],
        ),
        (Grant.on_cluster(Operation.ALTER), "ALTER on the cluster", ["Alter", "--cluster"]),
    ],
)
def test_a_grant_in_words_and_as_arguments_of_kafka_acls(grant: Grant, words: str, arguments: list[str]) -> None:
    assert str(grant) == words
    assert list(grant.arguments) == ["--operation", *arguments]
