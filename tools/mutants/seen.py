"""Which tests can notice a fault: those that execute its lines, as a measured run has left it, or that import it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Protocol

from coverage import CoverageData

from tests.affected.graph import repository_graph, tier_of
from tools.mutants.contexts import function_of


class Tests(Protocol):
    """Finds the tests for a fault."""

    #: True if the seconds of tests are known: then tests that take much longer hang.
    is_measured: bool

    def tests_of(self, path: str, first_line: int, last_line: int) -> tuple[str, ...]:
        """Return what pytest is to run, the likeliest to notice a fault first."""

    def seconds(self, tests: Iterable[str]) -> float:
        """Return the seconds that these take."""


class ByImports:
    """Test files by the chain of imports that leads to a module, as `./run affected` finds them."""

    is_measured = False

    def __init__(self, root: Path, folder: str) -> None:
        self._graph = repository_graph(root)
        self._folder = folder

    def tests_of(self, path: str, first_line: int, last_line: int) -> tuple[str, ...]:  # noqa: ARG002  # whole files
        """Return the files: those in folders of the same names first, then those with the shortest chains."""
        chains = self._graph.chains([path])
        names = set(PurePosixPath(path).parent.parts)

        def distance(file: str) -> tuple[int, int, str]:
            return -len(names & set(PurePosixPath(file).parts)), len(chains[file].nodes), file

        return tuple(sorted((file for file in chains if tier_of(file) == self._folder), key=distance))

    def seconds(self, tests: Iterable[str]) -> float:  # noqa: ARG002
        """Return 0: they are not known."""
        return 0.0


class Seen:
    """Tests by the lines that they execute.

    Args:
        data: coverage's combined data; None if nothing was measured.
        seconds: of each test function, with its fixtures.
    """

    is_measured = True

    def __init__(self, data: CoverageData | None, seconds: dict[str, float]) -> None:
        self._data = data
        self._seconds = seconds
        self._by_line: dict[str, dict[int, list[str]]] = {}

    @classmethod
    def read(cls, folder: Path) -> Seen:
        """Read what `measure` has left in a folder; a folder that does not exist gives no tests."""
        file = folder / "combined"
        if not file.is_file():
            return cls(None, {})
        data = CoverageData(basename=str(file))
        data.read()
        seconds: dict[str, float] = defaultdict(float)
        for part in sorted(folder.glob("seconds-*.json")):
            for name, each in json.loads(part.read_text(encoding="utf-8")).items():
                seconds[function_of(name)] += each
        return cls(data, dict(seconds))

    def tests_of(self, path: str, first_line: int, last_line: int) -> tuple[str, ...]:
        """Return the test functions that execute one of the lines, the likeliest to notice a fault first.

        These are the tests of the same package, then the quickest.
        """
        by_line = self._lines_of(path)
        found = {test for line in range(first_line, last_line + 1) for test in by_line.get(line, ()) if test}
        package = PurePosixPath(path).parts[1]
        return tuple(
            sorted(found, key=lambda test: (package not in PurePosixPath(test).parts, self.seconds((test,)), test))
        )

    def seconds(self, tests: Iterable[str]) -> float:
        """Return the seconds of these tests."""
        return sum(self._seconds.get(test, 1.0) for test in tests)

    def _lines_of(self, path: str) -> dict[int, list[str]]:
        if path not in self._by_line:
            known = self._data is not None and path in self._data.measured_files()
            self._by_line[path] = self._data.contexts_by_lineno(path) if self._data is not None and known else {}
        return self._by_line[path]
