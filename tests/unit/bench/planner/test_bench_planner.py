"""The bench of the planner: simulated clusters that are as large as they say, planned by the real code."""

from __future__ import annotations

from collections import Counter

from tools.bench.planner.measure import SHARES, measure_simulated, simulated_source


def test_a_simulated_source_has_as_many_topics_and_partitions_as_was_asked_for() -> None:
    source = simulated_source(300, 1_500, 0.3)

    assert len(source.topics) == 300
    assert sum(source.topics.values()) == len(source.logs) == 1_500
    assert max(source.topics.values()) > 5 * min(source.topics.values())


def test_a_plan_holds_what_is_to_be_copied_and_asks_by_batches() -> None:
    for what, planned, ends in (("first run", 1_000, 2), ("idle", 0, 3)):
        measured = measure_simulated(what, topics=200, partitions=1_000, tasks=4)

        assert (measured.topics, measured.partitions, measured.planned) == (200, 1_000, planned), what
        asked = Counter(measured.requests)
        assert asked["DescribeTopicPartitions"] == 2, what
        # Starts and ends of the source, and the ends of what was copied to, once from each leader.
        assert asked["ListOffsets"] == ends * 12, what
        assert bool(asked["DescribeConfigs"]) is bool(planned), what
        assert bool(asked["DescribeLogDirs"]) is bool(planned), what


def test_some_means_a_part_of_the_partitions() -> None:
    measured = measure_simulated("some", topics=200, partitions=1_000, tasks=4)

    assert SHARES["some"] * 1_000 * 0.7 < measured.planned < SHARES["some"] * 1_000 * 1.3
    assert measured.balance is not None
    assert measured.balance <= 1.05
