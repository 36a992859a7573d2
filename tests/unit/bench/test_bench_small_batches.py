"""The bench of small batches: that it runs, and takes only workloads that exist."""

from __future__ import annotations

import json

import pytest

from bench.small_batches import main


def test_it_tells_both_costs_and_their_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--records", "600", "--rounds", "1"]) == 0

    single, five = map(json.loads, capsys.readouterr().out.splitlines())
    assert (single["workload"], five["workload"]) == ("200b-single", "200b-five")
    for result in (single, five):
        costs = result["microseconds_per_record"]
        assert set(costs) == {"batch by batch", "blocks"}
        assert result["ratio"] > 0


def test_an_unknown_workload_is_a_wrong_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--workloads", "2kb"]) == 2
    assert "no such workload" in capsys.readouterr().err
