"""Topics that a file names and the flow leaves out: each is told with its reason, with the line of the file."""

from __future__ import annotations

from mirror_lib.problems import Problem, Severity
from tests.support.config_files import ConfigFile


def exclusions(file: ConfigFile, topics: str, *more: str) -> list[Problem]:
    problems = file.problems("\n".join((f"A->B.topics = {topics}", *more)))
    return [each for each in problems if "is not copied" in each.message]


def test_a_named_topic_that_is_left_out_is_told_with_its_reason(file: ConfigFile) -> None:
    for topic, why in [
        ("B.orders", "copied from cluster B"),
        ("B\\\\.orders", "copied from cluster B"),
        (".hidden", "internal"),
        ("__x", "internal"),
        ("mm2-offsets.A.internal", "internal"),
        ("orders.replica", "it matches `topics.exclude`"),
    ]:
        (problem,) = exclusions(file, f"orders, {topic}")

        assert (problem.severity, problem.line) == (Severity.WARNING, 5), topic
        assert f"names {topic.replace(chr(92), '')}," in problem.message, topic
        assert why in problem.message, topic

    (problem,) = exclusions(file, "__a|__b, __c")

    assert "names __a, __b, __c, which is not copied (internal)" in problem.message

    (problem,) = exclusions(file, "orders, orders-old", "A->B.topics.exclude = .*-old")

    assert "names orders-old" in problem.message


def test_a_named_group_that_an_exclusion_drops_is_told(file: ConfigFile) -> None:
    (problem,) = file.problems("A->B.groups = connect-sink, billing, console-.*")

    assert (problem.severity, problem.line) == (Severity.WARNING, 5)
    assert "names connect-sink, which is not translated: it matches `groups.exclude`" in problem.message


def test_what_is_copied_and_what_is_no_name_is_not_told(file: ConfigFile) -> None:
    for topics in ["orders, A.orders", ".*", "orders.*, __.*", "heartbeats"]:
        assert exclusions(file, topics) == [], topics
