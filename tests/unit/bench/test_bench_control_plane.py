"""The simulated half of the control plane's measurement: the plans are right, and requests do not grow with topics."""

from __future__ import annotations

from pathlib import Path

from bench.control_plane import GOAL_SECONDS, Measured, simulated


def test_plans_for_many_topics_take_a_few_requests(tmp_path: Path) -> None:
    configs, acls = simulated(1_500, tmp_path)

    # One list of topics and three requests of 500 topics, on each cluster.
    assert (configs.what, configs.requests) == ("plan configs", 2 * (1 + 3))
    # One list of ACLs on each cluster, and one of topics.
    assert (acls.what, acls.requests) == ("plan ACLs", 3)


def test_a_goal_is_reached_when_clock_and_processor_are_below_it() -> None:
    assert Measured("x", "y", 1.0, 2.0).reached
    assert not Measured("x", "y", 1.0, GOAL_SECONDS).reached
    assert not Measured("x", "y", GOAL_SECONDS, 1.0).reached
