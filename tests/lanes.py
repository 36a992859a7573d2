"""The two lanes: what `./run test` runs, and what `./run test --all` runs in addition.

The short lane has the unit tests of the product, and for each promise of README.md and docs/reliability.md at least one
test on real brokers: those that the table in CONTRIBUTING.md names. Every other test is in the lane `all`.

`python -m tests.lanes short|all FOLDER` prints what pytest is called with, a line each.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path, PurePath

#: Folders of `tests/unit` for the project's own tools, which run in the lane `all` only.
OWN_TOOLS = (
    "affected",
    "bench",
    "faults",
    "fuzz",
    "model",
    "mutants",
    "security",
    "supply",
    "testbed",
    "trials",
)
SHORT, ALL = "short", "all"
_TESTS = Path(__file__).parent
_FOLDERS = ("unit", "integration", "e2e")
_TABLE = re.compile(r"^\| promise \| [^\n]*\n\|[-|]*\n((?:\|[^\n]*\n)+)", re.MULTILINE)


@cache
def chosen() -> tuple[str, ...]:
    """Return the node ids of the tests that the table in CONTRIBUTING.md names, from the folder `tests`.

    Raises:
        ValueError: the table is missing, or a row names no test.
    """
    table = _TABLE.search((_TESTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    if table is None:
        raise ValueError("CONTRIBUTING.md has no table of promises and their tests")
    rows = {row: re.findall(r"`([^`]+)`", row.rsplit(" | ", 1)[1]) for row in table.group(1).splitlines()}
    if without := [row for row, tests in rows.items() if not tests]:
        raise ValueError(f"CONTRIBUTING.md names no test for: {without}")
    return tuple(dict.fromkeys(test for tests in rows.values() for test in tests))


def lane_of(path: PurePath) -> str | None:
    """Return the lane of a test file, given its path from the folder `tests`; None if it belongs to no lane.

    A file of which some tests are chosen is in the short lane with these, and in the other one with all.
    """
    if len(path.parts) < 2 or path.parts[0] not in _FOLDERS:
        return None
    if path.parts[0] == "unit":
        if len(path.parts) < 3:
            return None
        return ALL if path.parts[1] in OWN_TOOLS else SHORT
    return SHORT if any(test.partition("::")[0] == path.as_posix() for test in chosen()) else ALL


def stray_files(tests: Path) -> list[str]:
    """Return the test files below a folder `tests` that belong to no lane."""
    below = (path.relative_to(tests) for path in sorted(tests.rglob("test_*.py")))
    return [path.as_posix() for path in below if lane_of(path) is None]


def arguments(lane: str, folder: str) -> list[str]:
    """Return what pytest runs of one of the three folders in a lane, as paths from the project's root."""
    if lane == ALL:
        return [f"tests/{folder}"]
    if folder == "unit":
        groups = sorted(path.name for path in (_TESTS / "unit").iterdir() if path.is_dir() and path.name[0] not in "._")
        return [f"tests/unit/{group}" for group in groups if group not in OWN_TOOLS]
    return [f"tests/{test}" for test in chosen() if test.startswith(f"{folder}/")]


if __name__ == "__main__":
    print(*arguments(*sys.argv[1:]), sep="\n")
