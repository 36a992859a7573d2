"""`mirror position set`: what is shown if a partition cannot be set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_lib.cli.repair import position
from mirror_lib.cluster.topics import Position
from mirror_lib.errors import ConfigurationError
from mirror_lib.relay.repair.set_positions import PositionChange
from mirror_lib.topology import TopicPartition
from tests.support.terminal import Terminal

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
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def locked(*_: Any) -> Iterator[tuple[Any, ...]]:
        yield None, None, SimpleNamespace(ids=lambda: None), "run"

    monkeypatch.setattr(position, "locked_flow", locked)
    monkeypatch.setattr(position, "check_clusters", lambda *_: None)
    monkeypatch.setattr(position, "plan_changes", lambda *_, **__: PLANNED)

    code, shown, told = terminal.say("position", "set", "--topic", "orders", "--to", "50", "--yes")

    assert code == 2
    assert (shown + told).count("but not 50") == 1
    assert "orders-0: copying continues at source offset 50" in shown + told
    assert "Nothing was changed." in shown + told
