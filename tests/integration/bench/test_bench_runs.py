"""The benches of whole runs at a tiny scale: they measure what they say, and every copy is whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import Copier
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
