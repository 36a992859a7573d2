"""The short forms of `./run versions`: the oldest source with ZooKeeper into the newest target; markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.versions import markers
from tools.versions.clusters import OWN
from tools.versions.matrix import run
from tools.versions.results import PairResult


@pytest.mark.timeout(600)
def test_the_whole_flow_works_from_kafka_2_8_and_what_it_cannot_do_is_said(tmp_path: Path) -> None:
    results: list[PairResult] = []

    run(["2.8"], ["4.3"], tmp_path, results, lambda _: None)

    (result,) = results
    assert {step.step: step.failure for step in result.steps if step.failure} == {}
    assert result.ok
    assert [text.partition(":")[0] for text in result.limits] == ["A source older than Kafka 3.0"]
    degraded = {step.step: step.degraded for step in result.steps if step.degraded}
    assert degraded.keys() == {"topics", "configs"}
    assert all("message.format.version" in text for texts in degraded.values() for text in texts)
    assert list(tmp_path.rglob("*.pid")) == []


def test_records_between_many_markers_have_their_offsets(tmp_path: Path) -> None:
    results: list[markers.MarkersResult] = []

    markers.run([OWN], 40, tmp_path, results, lambda _: None)

    (result,) = results
    assert (result.markers, result.failure) == (40, None)
