"""The benches of whole runs at a tiny scale: they measure what they say, and every copy is whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import Copier
from tools.bench.growth import measure as growth
from tools.bench.growth.results import BYTES, IDLE_TOPICS
from tools.bench.lag import measure as lag
from tools.bench.transforms import measure as transforms
from tools.bench.transforms.cases import Contender, filter_and_mask

#: Brokers and Spark start at once, on whatever cores there are.
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
    with RelayHost(cores=2, directory=folder, spark_settings=transforms.SESSION_SETTINGS) as host:
        host.wait_started()
        yield host


def test_given_deleted_topics_when_settled_then_the_brokers_have_removed_their_files(pair: Pair, folder: Path) -> None:
    def parts_of_topic() -> list[str]:
        return [path.name for path in folder.rglob("gone.*") if path.is_dir()]

    pair.target.create("gone.topic", 3)
    assert len(parts_of_topic()) == 3
    # The new files of a topic that was made again are not waited for.
    pair.target.create("again.topic", 1)
    pair.target.delete(["again.topic"])
    pair.target.create("again.topic", 1)

    pair.forget("gone.")
    assert len(parts_of_topic()) == 3, "the broker removes later; without that this test says nothing"
    pair.settle()

    assert parts_of_topic() == []
    assert "again.topic" in pair.target.names()


def test_every_point_of_growth_is_copied_and_then_found_idle(pair: Pair, host: RelayHost, tmp_path: Path) -> None:
    sizes = growth.Sizes((), (), (1,), (20,), each_megabytes=1, idle_runs=1)
    options = growth.Options(series=(BYTES, IDLE_TOPICS), sizes=sizes)

    points = growth.run(options, pair, host, tmp_path, lambda _: None)

    assert [(point.series, point.amount) for point in points] == [(BYTES, 1), (IDLE_TOPICS, 20)]
    for point in points:
        assert point.complete
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


def test_a_transformed_copy_holds_what_it_must_by_count_and_by_sample(
    pair: Pair, host: RelayHost, tmp_path: Path
) -> None:
    case, contenders = filter_and_mask(compiled=False), (Contender.TRANSFORMED, Contender.RAW)
    options = transforms.Options((case.of_records(3_000),), contenders, partitions=2, warm_up=False)

    results = transforms.run(options, pair, host, tmp_path, lambda _: None)

    assert {each.contender for each in results.measured} == set(contenders)
    for each in results.measured:
        assert each.check.equal
        assert each.check.sampled == 2 * 4 * 50
        assert 0 < each.first_record <= each.whole
        assert each.cpu_seconds > 0
        assert (each.window.records < each.records) == (each.contender is Contender.TRANSFORMED)
