"""Where partitions without a position begin: the flow's own rules, then its consumer's `auto.offset.reset`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.first_start import EARLIEST, LATEST, FirstStarts, first_starts
from mirror_lib.config.loader import load
from mirror_lib.config.model import FirstStart
from mirror_lib.errors import ConfigurationError

FILE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


def rules(folder: Path, *lines: str) -> FirstStarts:
    path = folder / "mirror.properties"
    path.write_text(FILE + "\n".join(lines))
    return first_starts(load(path).flow("A->B"))


def test_a_flow_begins_where_its_file_says(tmp_path: Path) -> None:
    for line, expected in (
        ("", EARLIEST),
        ("A.consumer.auto.offset.reset = latest", LATEST),
        ("A.consumer.auto.offset.reset = earliest", EARLIEST),
        ("mirror.first.start = latest", LATEST),
        # The flow's own rule is stronger than the consumer's.
        ("A.consumer.auto.offset.reset = none\nmirror.first.start = latest", LATEST),
        ("A->B.mirror.first.start = offset 40", FirstStart(offset=40)),
        ("mirror.first.start = 2023-11-14T22:13:20Z", FirstStart(timestamp_ms=1_700_000_000_000)),
    ):
        assert rules(tmp_path, line).of("orders") == expected, line


def test_topics_have_their_own_rules_and_the_first_that_matches_the_whole_name_wins(tmp_path: Path) -> None:
    found = rules(
        tmp_path,
        "A.consumer.auto.offset.reset = latest",
        "mirror.first.start.topics = audit=earliest, pay.*=offset 7, payments=earliest",
    )

    assert {topic: found.of(topic) for topic in ("audit", "audit-2", "payments", "orders")} == {
        "audit": EARLIEST,
        "audit-2": LATEST,
        "payments": FirstStart(offset=7),
        "orders": LATEST,
    }


def test_any_other_reset_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'LATEST'") as caught:
        rules(tmp_path, "A.consumer.auto.offset.reset = LATEST")
    assert "A.consumer.auto.offset.reset" in str(caught.value)
