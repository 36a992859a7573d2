"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console import copies_in_process


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Copies run in this process, with a state folder of the test's own."""
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path / "state"))
    with copies_in_process():
        yield
