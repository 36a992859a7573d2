"""`mirror position set`: what is shown if a partition cannot be set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cli.repair import position
from mirror_lib.cluster.topics import Position
from mirror_lib.errors import ConfigurationError
from mirror_lib.relay.repair.set_positions import PositionChange
from mirror_lib.topology import TopicPartition

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
PLANNED = (
    PositionChange(
        TopicPartition("orders", 0), TopicPartition("A.orders", 0), None, Position("orders", 0, 49, target_offset=3)
    ),
    PositionChange(
        TopicPartition("orders", 1),
        TopicPartition("A.orders", 1),
        None,
        None,
        error=ConfigurationError("orders-1 has offsets 0 to 9, but not 50."),
    ),
)


def test_a_partition_that_cannot_be_set_is_reported_once_and_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def locked(*_: Any) -> Iterator[tuple[Any, ...]]:
        yield None, None, SimpleNamespace(ids=lambda: None), "run"

    monkeypatch.setattr(position, "locked_flow", locked)
    monkeypatch.setattr(position, "check_clusters", lambda *_: None)
    monkeypatch.setattr(position, "plan_changes", lambda *_, **__: PLANNED)
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)

    words = ["position", "set", "--config", str(path), "--flow", "A->B", "--topic", "orders", "--to", "50", "--yes"]
    done = CliRunner().invoke(app, words)

    assert done.exit_code == 2
    assert done.output.count("but not 50") == 1
    assert "orders-0: copying continues at source offset 50" in done.output
    assert "Nothing was changed." in done.output
