"""The simulated half of the control plane's measurement: requests do not grow with topics."""

from __future__ import annotations

from pathlib import Path

from tools.bench.control_plane import simulated


def test_plans_for_many_topics_take_a_few_requests(tmp_path: Path) -> None:
    configs, acls = simulated(1_500, tmp_path)

    # One list of topics and three requests of 500 topics, on each cluster.
    assert (configs.what, configs.requests) == ("plan configs", 2 * (1 + 3))
    # One list of ACLs on each cluster, and one of topics.
    assert (acls.what, acls.requests) == ("plan ACLs", 3)
