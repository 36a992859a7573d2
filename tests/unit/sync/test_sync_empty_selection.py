"""A flow that selects no topic is reported, since MM2 says nothing about it."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.sync.topics.empty_selection import about_empty_selection

FILE = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"


def test_given_lists_that_select_nothing_then_one_sentence_says_so(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    for lines, topics, is_told in (
        ('A->B.topics = "orders"', ["heartbeats"], True),
        (r"A->B.topics = pay\d+", [], True),
        ("A->B.topics = orders", ["heartbeats", "orders"], False),
        ("A->B.topics = heartbeats", ["heartbeats"], False),
        ("", ["heartbeats"], False),
        ("A->B.topics =", ["heartbeats"], False),
    ):
        path.write_text(f"{FILE}{lines}\n")
        flow = load(path).flow("A->B")

        told = list(about_empty_selection(flow, flow_topology(flow), topics))

        assert bool(told) is is_told, lines
        assert all(each.endswith("with `mirror config show`.") for each in told)
        assert all("flow A->B selects no topic of cluster A" in each for each in told)


def test_given_a_command_for_some_topics_then_they_say_nothing_about_the_lists(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    path.write_text(f"{FILE}A->B.topics = orders\n")
    flow = load(path).flow("A->B")

    assert list(about_empty_selection(flow, flow_topology(flow, ["heartbeats"]), ["heartbeats"])) == []
