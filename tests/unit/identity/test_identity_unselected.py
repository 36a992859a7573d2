"""Which partitions have left the selection of a flow, why, and whether that is meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_lib.config.topology import flow_topology
from mirror_lib.identity.unselected import Selection, Unselected
from mirror_lib.topology.handovers import Handovers
from mirror_lib.topology.names import TopicPartition
from tests.support.flow_configs import flow_config


def selection(*limits: str, handovers: Handovers | None = None, **settings: object) -> Selection:
    """The source lists orders, with 3 partitions, parts, whose metadata cannot be read, and what is not selected."""
    flow = flow_config(**{"topics": ("orders|parts|gone|hidden",), **settings, "handovers": handovers or Handovers()})
    listed = {"orders", "parts", "dropped", "B.orders"}
    return Selection(flow, flow_topology(flow, limits), listed, {"hidden"}, {"orders": 3, "parts": None})


@pytest.mark.parametrize(
    ("topic", "partition", "why"),
    [
        ("orders", 2, None),
        ("parts", 9, None),
        ("orders", 3, "the topic has only 3 partitions on A now"),
        ("gone", 0, "the topic was deleted on A"),
        ("hidden", 0, "the topic was deleted on A, or the permission to describe it is missing"),
        (
            "dropped",
            0,
            "`topics` and `topics.exclude` of the flow no longer select the topic (filtered), which A still has",
        ),
        ("B.orders", 0, "the rules of the flow no longer select the topic (cycle), which A still has"),
    ],
)
def test_why_a_partition_is_selected_no_longer(topic: str, partition: int, why: str | None) -> None:
    source, here = TopicPartition(topic, partition), selection()
    assert (None if here.selects(source) else here.why_not(source)) == why


def test_what_is_meant() -> None:
    away, back = Handovers(away=frozenset({"dropped"})), Handovers(here=frozenset({"orders"}))
    assert selection().why_meant("dropped") is None
    assert "a cutover" in (selection(handovers=away).why_meant("dropped") or "")
    assert "failback" in (selection(handovers=back, failback=True).why_meant("dropped") or "")
    assert selection(handovers=back, failback=True).why_meant("orders") is None
    assert selection(topics_exclude=("x", "drop.*")).why_meant("dropped") is None
    assert "names the topic" in (selection(topics_exclude=("x", "dropped")).why_meant("dropped") or "")
    assert "heartbeats" in (selection().why_meant("C.heartbeats") or "")


def test_a_run_of_some_topics_judges_only_these() -> None:
    assert [selection("gon.").judges(topic) for topic in ("gone", "dropped")] == [True, False]


def test_what_is_said_without_an_observation_or_with_an_older_one() -> None:
    empty = Unselected(TopicPartition("gone", 0), "it is gone", 0)
    assert empty.detail == (
        "it is gone; no record was copied; log end never observed. What was written later is unknown."
    )
    assert [replace(empty, position=30, log_end=end).following for end in (None, 20, 40)] == [30, 30, 40]
