"""Every test is in a lane, and the table of promises names tests that exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePath

import pytest

from tests.lanes import ALL, OWN_TOOLS, SHORT, arguments, chosen, lane_of

_TESTS = Path(__file__).resolve().parents[2]


def test_every_test_file_of_the_project_is_in_a_lane() -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "*test_*.py"], cwd=_TESTS.parent, capture_output=True, check=True)
    files = [Path(each.decode()) for each in listed.stdout.split(b"\0") if each]
    assert len(files) > 300
    stray = [file for file in files if file.name.startswith("test_") and lane_of(_below_tests(file)) is None]
    assert stray == []


def _below_tests(file: Path) -> PurePath:
    return file.relative_to("tests") if file.is_relative_to("tests") else file


def test_the_table_of_promises_names_files_that_exist() -> None:
    files = {test.partition("::")[0] for test in chosen()}

    assert [file for file in sorted(files) if not (_TESTS / file).is_file()] == []
    assert {PurePath(file).parts[0] for file in files} == {"integration", "e2e"}


@pytest.mark.parametrize(
    ("path", "lane"),
    [
        ("unit/topology/test_names.py", SHORT),
        *[(f"unit/{tool}/test_it.py", ALL) for tool in OWN_TOOLS],
        ("e2e/test_whole_path.py", SHORT),
        ("e2e/test_not_in_the_table.py", ALL),
        ("unit/test_beside_the_folders.py", None),
        ("elsewhere/test_it.py", None),
        ("test_it.py", None),
    ],
)
def test_the_lane_of_a_file_follows_from_its_folder_and_the_table(path: str, lane: str | None) -> None:
    assert lane_of(PurePath(path)) == lane


def test_the_lane_of_all_tests_holds_the_short_one() -> None:
    for folder in ("unit", "integration", "e2e"):
        (whole,) = arguments(ALL, folder)
        assert [each for each in arguments(SHORT, folder) if not each.startswith(whole)] == []


def test_a_skipped_test_fails_a_run_that_allows_none(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text("import pytest\n\n\ndef test_it() -> None:\n    pytest.skip('for no reason')\n", encoding="utf-8")
    program = (
        "import sys, pytest; from tests.support.no_skips import NoSkips; "
        "sys.exit(pytest.main(['-q', '-c', '/dev/null', '-p', 'no:cacheprovider', sys.argv[1]], plugins=[NoSkips()]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], cwd=_TESTS.parent, capture_output=True, text=True, check=False
    )

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "skipped, which no lane allows: test_it.py::test_it" in done.stdout
