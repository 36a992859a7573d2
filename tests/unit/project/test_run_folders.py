"""What a test run that was killed has left, when the next one begins: `run_folder`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.local_state import STATE_DIR_VARIABLE
from mirror_lib.dev.processes import start
from tests.support.clusters import run_folder


def test_given_a_broker_that_still_deletes_folders_when_the_next_run_begins_then_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_DIR_VARIABLE, str(tmp_path))
    left = tmp_path / "tests" / "1-1"
    deleted = left / "source" / "data" / "orders-0-delete"
    deleted.mkdir(parents=True)
    broker = start(["sleep", "600"], log=left / "log", pid_file=left / "source" / "z.pid")
    scan = os.scandir

    def scandir(path: Any = ".") -> Iterator[os.DirEntry[str]]:
        if str(path) == str(deleted) and deleted.exists():
            deleted.rmdir()
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)

    with run_folder():
        assert not broker.is_running
        assert not left.exists()
