"""The short form of `./run versions --airflow`: an Airflow without this package, and the oldest one with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.versions.airflow import AIRFLOWS, run
from tools.versions.two_topics import FlowResult

#: Version -> how the tasks of the flow run in it.
_VERSIONS = {"2.10": "external", "3.2": "in-process"}


@pytest.mark.timeout(2400)
def test_the_flow_dag_copies_and_transforms_in_other_airflows(tmp_path: Path) -> None:
    assert {version: AIRFLOWS[version].execution for version in _VERSIONS} == _VERSIONS
    results: list[FlowResult] = []

    run(list(_VERSIONS), tmp_path, results, lambda _: None)

    done = (None, {"copy": None, "transform": None, "second run": None})
    found = {version: (each.failure, each.steps) for version, each in zip(_VERSIONS, results, strict=True)}
    assert found == dict.fromkeys(_VERSIONS, done)
    assert list(tmp_path.rglob("*.pid")) == []
