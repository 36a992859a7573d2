"""Topics that a file names and the flow leaves out: each is told with its reason, with the line of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_lib.config.loader import check
from mirror_lib.problems import Problem, Severity

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = {}
"""


@pytest.fixture
def problems(tmp_path: Path) -> Callable[..., list[Problem]]:
    def of(topics: str, *more: str) -> list[Problem]:
        file = tmp_path / "mirror.properties"
        file.write_text("\n".join((_FILE.format(topics), *more)))
        return [each for each in check(file) if "is not copied" in each.message]

    return of


def test_a_named_topic_that_is_left_out_is_told_with_its_reason(problems: Callable[..., list[Problem]]) -> None:
    for topic, why in [
        ("B.orders", "copied from cluster B"),
        ("B\\\\.orders", "copied from cluster B"),
        (".hidden", "internal"),
        ("__x", "internal"),
        ("mm2-offsets.A.internal", "internal"),
        ("orders.replica", "it matches `topics.exclude`"),
    ]:
        (problem,) = problems(f"orders, {topic}")

        assert (problem.severity, problem.line) == (Severity.WARNING, 5), topic
        assert f"names {topic.replace(chr(92), '')}," in problem.message, topic
        assert why in problem.message, topic

    (problem,) = problems("__a|__b, __c")

    assert "names __a, __b, __c, which is not copied (internal)" in problem.message

    (problem,) = problems("orders, orders-old", "A->B.topics.exclude = .*-old")

    assert "names orders-old" in problem.message


def test_what_is_copied_and_what_is_no_name_is_not_told(problems: Callable[..., list[Problem]]) -> None:
    for topics in ["orders, A.orders", ".*", "orders.*, __.*", "heartbeats"]:
        assert problems(topics) == [], topics
