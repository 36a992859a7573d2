"""What a bench over a distance compares: the cases, the connections, and what a line lets through."""

from __future__ import annotations

import pytest

from bench.copiers.settings import Copier
from bench.distance.model import Allowed, Case, allowed, data_connections, lossy_workload
from bench.workloads.workload import WORKLOADS
from testbed.wan_direction import LineQuality

FAR = LineQuality(0.150, loss=0.01, window_bytes=6_000_000)


def test_only_lossy_cases_have_a_line_that_loses() -> None:
    lines = {case: case.line(FAR) for case in Case}

    assert lines[Case.LOCAL] is None
    assert lines[Case.SOURCE_FAR] == lines[Case.TARGET_FAR] == LineQuality(0.150, window_bytes=6_000_000)
    assert lines[Case.SOURCE_LOSSY] == lines[Case.TARGET_LOSSY] == FAR


def test_one_cluster_at_a_time_is_behind_the_line() -> None:
    assert [case for case in Case if case.source_far] == [Case.SOURCE_FAR, Case.SOURCE_LOSSY]
    assert [case for case in Case if case.target_far] == [Case.TARGET_FAR, Case.TARGET_LOSSY]


def test_each_connection_has_its_window_under_way_once_in_a_round_trip() -> None:
    found = allowed(LineQuality(0.150, window_bytes=6_000_000), 8)

    # 6 MB / 0.15 s = 40 MB/s.
    assert found == Allowed(8, window=8 * 40e6, loss=None, width=None)
    assert found.most == found.window


def test_loss_allows_each_connection_what_mathis_found() -> None:
    # 1.22 * 1460 bytes / (0.15 s * sqrt(0.01)) = 118,747 bytes a second.
    found = allowed(FAR, 8)

    assert found.loss == pytest.approx(8 * 118_747, rel=1e-5)
    assert found.most == found.loss


def test_the_width_of_a_line_is_shared_by_all_its_connections() -> None:
    found = allowed(LineQuality(0.150, bytes_per_second=125e6, window_bytes=6_000_000), 8)

    assert (found.width, found.most) == (125e6, 125e6)


def test_a_line_without_length_or_width_allows_everything() -> None:
    assert allowed(LineQuality(0.0, window_bytes=6_000_000), 8).most is None
    assert allowed(LineQuality(0.150), 8).most is None


@pytest.mark.parametrize(
    ("partitions", "tasks", "asked", "connections"),
    [
        (8, 2, 0, 8),  # 15 connections for 150 ms, but each task has 4 partitions
        (100, 2, 0, 30),
        (100, 2, 40, 80),
        (8, 2, 1, 2),
        (3, 2, 0, 3),
    ],
)
def test_our_connections_grow_with_the_distance_as_far_as_there_are_partitions(
    partitions: int, tasks: int, asked: int, connections: int
) -> None:
    found = data_connections(Copier.MIRROR, 0.150, partitions=partitions, tasks=tasks, connections_per_broker=asked)

    assert found == connections


def test_a_task_of_mirror_maker_has_one_connection_for_records_to_each_side() -> None:
    assert data_connections(Copier.MM2_TUNED, 0.150, partitions=8, tasks=2) == 2


def test_over_a_lossy_line_as_many_records_go_as_it_takes_through_in_the_time_given() -> None:
    workload = WORKLOADS[0].scaled(500_000)

    found = lossy_workload(workload, most=1e6, seconds=60, partitions=8)

    assert found.records == 60_000
    assert found.name != workload.name


def test_never_more_records_go_than_there_are_nor_less_than_two_batches_a_partition() -> None:
    workload = WORKLOADS[0].scaled(500_000)

    assert lossy_workload(workload, most=1e9, seconds=60, partitions=8) == workload
    assert lossy_workload(workload, most=None, seconds=60, partitions=8) == workload
    assert lossy_workload(workload, most=1.0, seconds=60, partitions=8).records == 2 * 8 * workload.records_per_batch
