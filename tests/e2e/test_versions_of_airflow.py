"""The short form of `./run versions --airflow`: an Airflow without this package, and the oldest one with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from versions.airflow import AIRFLOWS, run
from versions.two_topics import FlowResult


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("version", "execution"), [("2.10", "external"), ("3.2", "in-process")])
def test_the_flow_dag_copies_and_transforms_in_another_airflow(version: str, execution: str, tmp_path: Path) -> None:
    assert AIRFLOWS[version].execution == execution
    results: list[FlowResult] = []

    run([version], tmp_path, results, lambda _: None)

    (result,) = results
    assert result.failure is None
    assert result.steps == {"copy": None, "transform": None, "second run": None}
    assert list(tmp_path.rglob("*.pid")) == []
