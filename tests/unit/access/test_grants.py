"""Which right brings which other along."""

from __future__ import annotations

from mirror_lib.topology.access import Grant, Operation, Resource, without_covered
from mirror_lib.topology.acls import AclPattern


def topic(operation: Operation, name: str, pattern: AclPattern = AclPattern.LITERAL) -> Grant:
    return Grant(Resource.TOPIC, name, pattern, operation)


PREFIXED = AclPattern.PREFIXED


def test_operations_allow_describing_and_altering_configs_reading_them() -> None:
    describe = topic(Operation.DESCRIBE, "a")
    for operation in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE):
        assert topic(operation, "a").covers(describe), operation
    for operation in (Operation.CREATE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS):
        assert not topic(operation, "a").covers(describe), operation

    read, alter = topic(Operation.DESCRIBE_CONFIGS, "a"), topic(Operation.ALTER_CONFIGS, "a")
    assert alter.covers(read)
    assert not read.covers(alter)


def test_patterns_hold_names_and_narrower_patterns() -> None:
    for one, other, covers in (
        (topic(Operation.READ, "*"), topic(Operation.READ, "a"), True),
        (topic(Operation.READ, "*"), topic(Operation.READ, "a", PREFIXED), True),
        (topic(Operation.READ, "a", PREFIXED), topic(Operation.READ, "ab"), True),
        (topic(Operation.READ, "a", PREFIXED), topic(Operation.READ, "ab", PREFIXED), True),
        (topic(Operation.READ, "ab", PREFIXED), topic(Operation.READ, "a", PREFIXED), False),
        (topic(Operation.READ, "a"), topic(Operation.READ, "a", PREFIXED), False),
        (topic(Operation.READ, "a", PREFIXED), topic(Operation.READ, "*"), False),
        (topic(Operation.READ, "a"), topic(Operation.READ, "b"), False),
        (Grant.on_group(Operation.READ, "a"), topic(Operation.READ, "a"), False),
    ):
        assert one.covers(other) is covers, (one, other)

    read, describe = topic(Operation.READ, "a", PREFIXED), topic(Operation.DESCRIBE, "ab")
    assert without_covered([describe, read, read]) == (read,)


def test_a_grant_in_words_and_as_arguments_of_kafka_acls() -> None:
    of_transactions = Grant.on_transactional_id(Operation.WRITE, "mirror:x")
    for grant, words, arguments in (
        (topic(Operation.WRITE, "A.orders"), "WRITE on topic A.orders", ["Write", "--topic", "A.orders"]),
        (
            topic(Operation.DESCRIBE_CONFIGS, "A.", PREFIXED),
            "DESCRIBE_CONFIGS on topics that begin with A.",
            ["DescribeConfigs", "--topic", "A.", "--resource-pattern-type", "prefixed"],
        ),
        (topic(Operation.READ, "*"), "READ on all topics", ["Read", "--topic", "*"]),
        (Grant.on_group(Operation.READ, "g"), "READ on group g", ["Read", "--group", "g"]),
        (of_transactions, "WRITE on transactional id mirror:x", ["Write", "--transactional-id", "mirror:x"]),
        (Grant.on_cluster(Operation.ALTER), "ALTER on the cluster", ["Alter", "--cluster"]),
    ):
        assert str(grant) == words
        assert list(grant.arguments) == ["--operation", *arguments]
