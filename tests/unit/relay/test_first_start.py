"""Where a partition without a position begins, by the flow's `auto.offset.reset`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.load import load
from mirror_lib.errors import ConfigurationError
from mirror_lib.relay.plan import FirstStart
from mirror_lib.relay.replicate import first_start

FILE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", FirstStart.EARLIEST),
        ("A.consumer.auto.offset.reset = latest", FirstStart.LATEST),
        ("A.consumer.auto.offset.reset = earliest", FirstStart.EARLIEST),
    ],
)
def test_earliest_and_latest_are_known(tmp_path: Path, line: str, expected: FirstStart) -> None:
    path = tmp_path / "mirror.properties"
    path.write_text(f"{FILE}{line}\n")
    assert first_start(load(path).flow("A->B")) is expected


def test_any_other_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mirror.properties"
    path.write_text(f"{FILE}A.consumer.auto.offset.reset = none\n")
    with pytest.raises(ConfigurationError, match="'none'") as caught:
        first_start(load(path).flow("A->B"))
    assert "A.consumer.auto.offset.reset" in caught.value.action
