"""The transforms bench at a tiny scale: every contender writes what it must, by count and by sample."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.clusters.pair import Pair, started_pair
from bench.copiers.relay_host import RelayHost
from bench.transforms import measure as transforms
from bench.transforms.cases import Case, Contender, filter_and_mask, pass_through
from bench.transforms.java_transform import has_compiler

#: Brokers, Spark and MirrorMaker start at once, on whatever cores there are.
pytestmark = pytest.mark.timeout(600)
_RECORDS = 3000


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


@pytest.mark.parametrize(
    ("case", "contenders"),
    [
        (filter_and_mask(compiled=True), (Contender.TRANSFORMED, Contender.RAW, Contender.MM2_TUNED)),
        (filter_and_mask(compiled=False), (Contender.MM2_DEFAULT,)),
        (pass_through(), (Contender.TRANSFORMED,)),
    ],
    ids=["java-transform", "connects-own-transforms", "pass-through"],
)
def test_every_contender_writes_what_it_must(
    pair: Pair, host: RelayHost, tmp_path: Path, case: Case, contenders: tuple[Contender, ...]
) -> None:
    if case.smt.get("transforms.mask.type") is not None and not has_compiler():
        pytest.skip("this Java has no compiler")
    options = transforms.Options((case.of_records(_RECORDS),), contenders, partitions=2, warm_up=False)

    results = transforms.run(options, pair, host, tmp_path, lambda _: None)

    assert {each.contender for each in results.measured} == set(contenders)
    for each in results.measured:
        assert each.check.equal
        assert each.check.sampled == 2 * 4 * 50
        assert 0 < each.first_record <= each.whole
        assert each.cpu_seconds > 0
        masked = case.outcome(each.contender) is not case.outcome(Contender.RAW)
        assert (each.window.records < each.records) == masked
