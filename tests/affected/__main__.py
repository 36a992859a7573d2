"""`./run affected [REV] [--list] [PYTEST OPTIONS]`: run the tests that depend on what differs from REV."""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.affected.changes import GitError, changed_files
from tests.affected.graph import TIERS, Chain, repository_graph, tier_of

_ROOT = Path(__file__).resolve().parents[2]
#: Files that every test depends on: versions of packages, options of pytest, hooks.
EVERYTHING = ("requirements.lock", "pyproject.toml", "tests/conftest.py")
#: So few files do not repay the start of several processes.
_FEW_FILES = 3
#: pytest's exit code if no test was collected, such as when `-k` matches none of a tier.
_NO_TESTS = 5


@dataclass(frozen=True, slots=True)
class Selection:
    """The test files that depend on changed files, each with its reason, and the number of all test files."""

    chains: Mapping[str, Chain]
    total: int
    #: Python files with a syntax error, by path: their imports are unknown, so they count as changed.
    unreadable: Mapping[str, str]

    def of_tier(self, *names: str) -> list[str]:
        """Return the files of these tiers."""
        return [path for path in self.chains if tier_of(path) in names]

    def summary(self) -> Iterator[str]:
        """Lines for the terminal."""
        yield from (f"{path} has a syntax error ({error})" for path, error in self.unreadable.items())
        counts = ", ".join(f"{name} {len(self.of_tier(name))}" for name in TIERS)
        yield f"{len(self.chains)} of {self.total} test files ({counts}); ./run test runs them all"


def select(root: Path, changed: Sequence[str]) -> Selection:
    """Return the tests that depend on the changed files."""
    graph = repository_graph(root, gone=changed)
    tests = sorted(path for path in graph.sources if tier_of(path) and (root / path).is_file())
    unreadable = {path: source.error for path, source in sorted(graph.sources.items()) if source.error}
    if everything := [path for path in EVERYTHING if path in changed]:
        chains = {path: Chain((path, everything[0])) for path in tests}
    else:
        chains = graph.chains({*changed, *unreadable})
    return Selection({path: chains[path] for path in tests if path in chains}, len(tests), unreadable)


def main(arguments: Sequence[str]) -> int:
    """Return the exit code: that of the pass that fails, 2 if the changes cannot be determined."""
    options, passed_on = _parser().parse_known_args(arguments)
    # The first word is REV; what follows an option belongs to pytest.
    revision = passed_on.pop(0) if passed_on and not passed_on[0].startswith("-") else None
    # Syntax trees of all files are a million objects without cycles: looking for those doubles the time.
    gc.disable()
    try:
        commit, changed = changed_files(_ROOT, revision)
    except GitError as error:
        print(f"run: {error}", file=sys.stderr)
        return 2
    selection = select(_ROOT, changed)
    if options.list:
        print(*selection.chains.values(), sep="\n")
    print(f"{len(changed)} files differ from {commit[:8]}", *selection.summary(), sep="\n", flush=True)
    return 0 if options.list else _run(selection, passed_on)


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


def _run(selection: Selection, passed_on: Sequence[str]) -> int:
    """Run the unit tests and, if they pass, integration and end-to-end tests in one pass, as `./run test` does."""
    unit, others = selection.of_tier("unit"), selection.of_tier("integration", "e2e")
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
