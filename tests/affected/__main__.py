"""`./run affected [REV] [--list] [PYTEST OPTIONS]`: run the tests that depend on what differs from REV."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.affected.changes import GitError, changes_since
from tests.affected.selection import Tier, select

_ROOT = Path(__file__).resolve().parents[2]
#: So few files do not repay the start of several processes.
_FEW_FILES = 3
#: pytest's exit code if no test was collected, such as when `-k` matches none of a tier.
_NO_TESTS = 5


def main(arguments: Sequence[str]) -> int:
    """Return the exit code: that of the pass that fails, 2 if the changes cannot be determined."""
    options, passed_on = _parser().parse_known_args(arguments)
    # The first word is REV; what follows an option belongs to pytest.
    revision = passed_on.pop(0) if passed_on and not passed_on[0].startswith("-") else None
    try:
        selection = select(changes_since(_ROOT, revision))
    except GitError as error:
        print(f"run: {error}", file=sys.stderr)
        return 2
    if options.list:
        print(*selection.listing(), sep="\n", end="\n" if not selection.is_empty else "")
    print(*selection.summary(), sep="\n", flush=True)
    return 0 if options.list else _run(selection.tiers, passed_on)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run affected",
        usage="./run affected [REV] [--list] [PYTEST OPTIONS]",
        description="Run the tests that depend on the files that differ from REV, unit tests first.",
        epilog="REV: commit to compare with. Default: the commit where the branch left the main branch, or HEAD.",
        allow_abbrev=False,
    )
    parser.add_argument("--list", action="store_true", help="show the selected files and the reasons, run nothing")
    return parser


def _run(tiers: Sequence[Tier], passed_on: Sequence[str]) -> int:
    """Run the unit tests and, if they pass, integration and end-to-end tests in one pass, as `./run test` does."""
    unit = [path for tier in tiers if tier.name == "unit" for path in tier.files]
    others = [path for tier in tiers if tier.name != "unit" for path in tier.files]
    code = 0
    if unit:
        # `./run unit` alone skips those unit tests that need a PostgreSQL server.
        workers = "auto" if len(unit) > _FEW_FILES else "0"
        code = _run_files("unit", "-m", "", "-n", workers, *passed_on, *unit)
    if others and not code:
        code = _run_files("integration", *_workers(len(others)), *passed_on, *others)
    return code


def _workers(files: int) -> tuple[str, ...]:
    if files == 1:
        return ("-n", "0")
    return ("-n", str(min(files, (os.cpu_count() or 1) + 1)), "--dist", "loadfile", "--no-loadscope-reorder")


def _run_files(command: str, *arguments: str) -> int:
    process = subprocess.Popen(("sh", str(_ROOT / "run"), command, *arguments), cwd=_ROOT)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        # The terminal interrupts pytest, too: its fixtures end what they started.
        process.wait()
        return 130
    return 0 if code == _NO_TESTS else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
