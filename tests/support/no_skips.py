"""A skipped test protects nothing: `./run test` fails if there is one, and names it."""

from __future__ import annotations

import os

import pytest

#: The one reason to skip a test outside of continuous integration, which has root: it acts as another user.
NEEDS_ROOT = "needs root"


class NoSkips:
    """Fails the run if a test, or a whole file, was skipped."""

    def __init__(self) -> None:
        self._skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a skipped test; an expected failure is none."""
        if report.skipped and not hasattr(report, "wasxfail") and not _is_allowed(report):
            self._skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a skipped file."""
        if report.skipped:
            self._skipped.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a passed run into a failed one."""
        if self._skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which."""
        for nodeid in self._skipped:
            terminalreporter.write_line(f"skipped, which no lane allows: {nodeid}", red=True)


def _is_allowed(report: pytest.TestReport) -> bool:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return "CI" not in os.environ and reason.endswith(NEEDS_ROOT)
