"""Which tests execute which lines, and how long they take: what a measured run has left."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from coverage import CoverageData

from mutants.contexts import function_of


class Seen:
    """Tests by the lines that they execute.

    Args:
        data: coverage's combined data; None if nothing was measured.
        seconds: of each test function, with its fixtures.
    """

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
