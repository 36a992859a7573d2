"""The documentation lists the metrics that exist, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from mirror_lib.observe.metrics import METRICS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(mirror_[a-z_]+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def test_every_metric_has_a_row_with_its_labels_and_meaning() -> None:
    rows = {name: (labels, meaning) for name, _, labels, meaning in ROW.findall(DOCUMENT.read_text())}

    assert set(rows) == {metric.name for metric in METRICS}
    for metric in METRICS:
        labels, meaning = rows[metric.name]
        assert re.findall(r"`([a-z]+)`", labels) == list(metric.labels)
        assert meaning == metric.help


def test_every_metric_has_a_unit() -> None:
    assert all(unit.strip() for _, unit, _, _ in ROW.findall(DOCUMENT.read_text()))


def test_no_other_metric_is_spoken_of() -> None:
    spoken = set(re.findall(r"\bmirror_[a-z_]+\b", DOCUMENT.read_text()))

    assert spoken == {metric.name for metric in METRICS}
