"""The bench of small batches runs."""

from __future__ import annotations

import json

import pytest

from tools.bench.small_batches import main


def test_it_reports_both_costs_and_their_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--records", "600", "--rounds", "1"]) == 0

    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["workload"] for result in results] == ["200b-single", "200b-five"]
    for result in results:
        assert set(result["microseconds_per_record"]) == {"batch by batch", "blocks"}
        assert result["ratio"] > 0
