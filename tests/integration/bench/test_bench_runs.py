"""The benches of whole runs at a tiny scale: they measure what they say, and every copy is whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.clusters.pair import Pair, started_pair
from bench.copiers.relay_host import RelayHost
from bench.copiers.settings import Copier
from bench.end_to_end import measure as end_to_end
from bench.end_to_end.results import Race
from bench.growth import measure as growth
from bench.growth.results import BYTES, IDLE_TOPICS, PARTITIONS, RECORD_SIZE
from bench.lag import measure as lag
from bench.workloads.workload import WORKLOADS

#: Brokers, Spark and MirrorMaker start at once, on whatever cores there are.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[Pair]:
    with started_pair(folder / "brokers") as pair:
        yield pair


@pytest.fixture(scope="module")
def host(folder: Path, pair: Pair) -> Iterator[RelayHost]:
    with RelayHost(cores=2, directory=folder) as host:
        host.wait_started()
        yield host


def test_given_deleted_topics_when_settled_then_the_brokers_have_removed_their_files(pair: Pair, folder: Path) -> None:
    def parts_of_topic() -> list[str]:
        return [path.name for path in folder.rglob("gone.*") if path.is_dir()]

    pair.target.create("gone.topic", 3)
    assert len(parts_of_topic()) == 3

    pair.forget("gone.")
    assert len(parts_of_topic()) == 3, "the broker removes later; without that this test says nothing"
    pair.settle()

    assert parts_of_topic() == []


def test_given_a_topic_made_again_after_its_deletion_when_settled_then_its_new_files_are_not_waited_for(
    pair: Pair,
) -> None:
    pair.target.create("again.topic", 1)
    pair.target.delete(["again.topic"])
    pair.target.create("again.topic", 1)

    pair.settle()

    assert "again.topic" in pair.target.names()


def test_every_point_of_growth_is_copied_and_then_found_idle(pair: Pair, host: RelayHost, tmp_path: Path) -> None:
    sizes = growth.Sizes((120,), (10,), (1, 2), (20,), each_megabytes=1, idle_runs=1)

    points = growth.run(growth.Options(sizes=sizes), pair, host, tmp_path, lambda _: None)

    assert [(point.series, point.amount) for point in points] == [
        (PARTITIONS, 120),
        (RECORD_SIZE, 10),
        (BYTES, 1),
        (BYTES, 2),
        (IDLE_TOPICS, 20),
    ]
    assert all(point.complete for point in points)
    for point in points:
        assert point.copy.phases["copy"] > 0
        assert point.idle.phases["copy"] == 0


def test_under_load_every_record_is_seen_once_and_its_lag_known(pair: Pair, host: RelayHost, tmp_path: Path) -> None:
    options = lag.Options((Copier.MIRROR,), megabytes_per_second=0.5, seconds=3, start_up_seconds=1, partitions=2)

    (measured,) = lag.run(options, pair, host, tmp_path, lambda _: None)

    assert measured.written.records == 1_500
    assert sum(second.records for second in measured.seconds) == measured.written.records
    assert measured.start_up is not None
    assert 0 < measured.lag.records < measured.written.records
    assert 0 < measured.lag.median <= measured.lag.p99 <= measured.lag.most
    assert measured.rounds is not None
    assert measured.rounds.rounds >= 1


def test_a_cold_batch_and_mm2_start_together_and_both_copy_everything(pair: Pair, tmp_path: Path) -> None:
    workload = replace(WORKLOADS[0].scaled(2_000), name="cold")
    options = end_to_end.Options((workload,), races=(Race.COLD_TOGETHER,), partitions=2, warm_up=False)

    results = end_to_end.run(options, pair, tmp_path, lambda _: None)

    assert [each.timing.label for each in results] == ["spark-submit", Copier.MM2_DEFAULT.label]
    for each in results:
        assert each.timing.equal
        assert 0 < each.timing.first_record <= each.timing.last_record <= each.timing.done


@pytest.mark.parametrize("way", [end_to_end.CONNECT, end_to_end.HOSTED])
def test_a_warm_run_is_measured_from_the_start_of_its_driver(pair: Pair, tmp_path: Path, way: str) -> None:
    workload = replace(WORKLOADS[0].scaled(2_000), name="warm")
    options = end_to_end.Options(
        (workload,),
        races=(Race.WARM,),
        warm_ways=(way,),
        warm_peers=(),
        partitions=2,
        warm_up=False,
    )

    (result,) = end_to_end.run(options, pair, tmp_path, lambda _: None)

    assert result.timing.label == way
    assert result.timing.equal
    assert result.timing.started <= result.timing.last_record <= result.timing.done
