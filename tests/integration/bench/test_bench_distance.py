"""The bench over a distance at a tiny scale: every copy is whole, wherever the line is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.bench.copiers.settings import Copier
from tools.bench.distance import measure as distance
from tools.bench.distance.model import Case
from tools.bench.distance.options import Options
from tools.bench.distance.sites import Sites, started_sites
from tools.bench.workloads.workload import WORKLOADS
from tools.testbed.wan_direction import LineQuality


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with started_sites(tmp_path_factory.mktemp("distance")) as sites:
        yield sites


def test_every_case_is_copied_whole(sites: Sites, tmp_path: Path) -> None:
    quality = LineQuality(0.020, loss=0.001, window_bytes=1_000_000)
    options = Options(WORKLOADS[0].scaled(2_000), quality, partitions=2, lossy_seconds=0.5, warm_up=False)

    results = distance.run(options, sites, tmp_path, lambda _: None)

    assert [each.failure for each in results] == [""] * len(Case)
    assert [(each.case, each.copier) for each in results] == [(case, Copier.MIRROR) for case in Case]
    for each in results:
        assert each.equal
        assert each.seconds > 0
        assert (each.line_cpu_seconds > 0) == (each.case is not Case.LOCAL)
