"""What a bench over a distance compares: the cases, the connections, and what a line lets through."""

from __future__ import annotations

import pytest

from bench.copiers.settings import Copier
from bench.distance.model import Allowed, Case, allowed, data_connections, lossy_workload
from bench.workloads.workload import WORKLOADS
from testbed.wan_direction import LineQuality

FAR = LineQuality(0.150, loss=0.01, window_bytes=6_000_000)


def test_one_cluster_at_a_time_is_behind_the_line_and_only_lossy_cases_lose() -> None:
    lines = {case: case.line(FAR) for case in Case}

    assert lines[Case.LOCAL] is None
    assert lines[Case.SOURCE_FAR] == lines[Case.TARGET_FAR] == LineQuality(0.150, window_bytes=6_000_000)
    assert lines[Case.SOURCE_LOSSY] == lines[Case.TARGET_LOSSY] == FAR
    assert [case for case in Case if case.source_far] == [Case.SOURCE_FAR, Case.SOURCE_LOSSY]
    assert [case for case in Case if case.target_far] == [Case.TARGET_FAR, Case.TARGET_LOSSY]


def test_a_line_allows_the_least_of_window_loss_and_width() -> None:
    # 6 MB / 0.15 s = 40 MB/s.
    windowed = allowed(LineQuality(0.150, window_bytes=6_000_000), 8)
    assert windowed == Allowed(8, window=8 * 40e6, loss=None, width=None)
    assert windowed.most == windowed.window

    # Mathis: 1.22 * 1460 bytes / (0.15 s * sqrt(0.01)) = 118,747 bytes a second.
    lossy = allowed(FAR, 8)
    assert lossy.loss == pytest.approx(8 * 118_747, rel=1e-5)
    assert lossy.most == lossy.loss

    # All connections share the width.
    wide = allowed(LineQuality(0.150, bytes_per_second=125e6, window_bytes=6_000_000), 8)
    assert (wide.width, wide.most) == (125e6, 125e6)

    assert allowed(LineQuality(0.0, window_bytes=6_000_000), 8).most is None
    assert allowed(LineQuality(0.150), 8).most is None


def test_our_connections_grow_with_the_distance_as_far_as_there_are_partitions() -> None:
    for partitions, asked, connections in (
        (8, 0, 8),  # 15 connections for 150 ms, but each of two tasks has 4 partitions
        (100, 0, 30),
        (100, 40, 80),
        (8, 1, 2),
        (3, 0, 3),
    ):
        ours = data_connections(Copier.MIRROR, 0.150, partitions=partitions, tasks=2, connections_per_broker=asked)
        assert ours == connections, (partitions, asked)
    assert data_connections(Copier.MM2_TUNED, 0.150, partitions=8, tasks=2) == 2


def test_over_a_lossy_line_as_many_records_go_as_it_takes_through_in_the_time_given() -> None:
    workload = WORKLOADS[0].scaled(500_000)

    found = lossy_workload(workload, most=1e6, seconds=60, partitions=8)

    assert found.records == 60_000
    assert found.name != workload.name
    # Never more than there are, nor less than two batches for each partition.
    assert lossy_workload(workload, most=1e9, seconds=60, partitions=8) == workload
    assert lossy_workload(workload, most=None, seconds=60, partitions=8) == workload
    assert lossy_workload(workload, most=1.0, seconds=60, partitions=8).records == 2 * 8 * workload.records_per_batch
