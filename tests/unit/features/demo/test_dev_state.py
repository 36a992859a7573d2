"""Where fetched jars live, and locks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mirror_lib.config.local_state import project_root
from mirror_lib.features.demo.state import exclusive, jars_dir


@pytest.fixture(autouse=True)
def no_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIRROR_STATE_DIR", raising=False)
    monkeypatch.delenv("MIRROR_JARS_DIR", raising=False)


def test_the_jars_live_with_the_state_unless_they_are_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jars_dir() == project_root() / ".mirror" / "jars"

    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path))
    assert jars_dir() == tmp_path / "jars"

    monkeypatch.setenv("MIRROR_JARS_DIR", str(tmp_path / "shared"))
    assert jars_dir() == tmp_path / "shared"


def test_given_a_held_lock_when_another_asks_then_it_is_told_and_waits(tmp_path: Path) -> None:
    lock, order, told = tmp_path / "x" / "lock", [], threading.Event()

    def second() -> None:
        with exclusive(lock, told.set):
            order.append("second")

    with exclusive(lock):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        order.append("first")
    thread.join(10)

    assert order == ["first", "second"]
