"""The documentation lists the metrics that exist, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from mirror_lib.observe.metrics import METRICS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(mirror_[a-z_]+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def test_every_metric_has_a_row_with_its_unit_labels_and_meaning_and_no_other_is_spoken_of() -> None:
    text = DOCUMENT.read_text()
    rows = {name: (unit, labels, meaning) for name, unit, labels, meaning in ROW.findall(text)}

    names = {metric.name for metric in METRICS}
    assert set(rows) == names
    for metric in METRICS:
        unit, labels, meaning = rows[metric.name]
        assert unit.strip(), metric.name
        assert re.findall(r"`([a-z]+)`", labels) == list(metric.labels)
        assert meaning == metric.help
    assert set(re.findall(r"\bmirror_[a-z_]+\b", text)) == names
