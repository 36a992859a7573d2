"""A plugin for pytest: coverage records which test executed a line, and each test's seconds are stored.

Processes that a test starts record it, too: they read the name of the test from their environment (see `coverage.ini`).
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

#: Environment variable for started processes: the test that runs.
TEST = "MUTANTS_TEST"
#: Environment variable: the folder for the seconds of tests.
SECONDS = "MUTANTS_SECONDS"


def function_of(nodeid: str) -> str:
    """Return the node id of a test without its parameters."""
    return nodeid.partition("[")[0]


class Contexts:
    """Names the running test to coverage, and counts its seconds with those of its fixtures."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """One test with setup and teardown."""
        name = function_of(item.nodeid)
        measured = coverage.Coverage.current()
        started = time.monotonic()
        os.environ[TEST] = name
        if measured is not None:
            measured.switch_context(name)
        try:
            return (yield)
        finally:
            os.environ.pop(TEST, None)
            self._seconds[name] += time.monotonic() - started
            if measured is not None:
                measured.switch_context("")

    def pytest_sessionfinish(self) -> None:
        """Write down the seconds."""
        if self._folder is not None and self._seconds:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / f"seconds-{os.getpid()}.json").write_text(json.dumps(self._seconds), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin."""
    folder = os.environ.get(SECONDS)
    config.pluginmanager.register(Contexts(Path(folder) if folder else None))
