"""The tests that changes can touch, tier by tier, with the reason for each."""

from __future__ import annotations

import gc
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.affected.changes import Changes, repository_files
from tests.affected.graph import EVERYTHING, TIERS, Chain, Graph, fixture_node, tier_of
from tests.affected.references import SourceFile, changed_fixtures, read_source

#: Changed files that a summary names; it counts the others.
_NAMED_FILES = 5


@dataclass(frozen=True, slots=True)
class Tier:
    """Test files of one tier: the selected ones, each with its reason, and the number of all."""

    name: str
    selected: tuple[Chain, ...]
    total: int

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(chain.nodes[0] for chain in self.selected)

    @property
    def skipped(self) -> int:
        return self.total - len(self.selected)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run of `./run affected` runs and skips."""

    changes: Changes
    tiers: tuple[Tier, ...]
    #: Changed files that every test depends on.
    everything: tuple[str, ...]
    #: Python files with a syntax error, by path.
    unreadable: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        return not any(tier.selected for tier in self.tiers)

    def summary(self) -> Iterator[str]:
        """The changes, the number of tests per tier with one reason each, and what is skipped."""
        yield self._differing()
        for path, error in self.unreadable.items():
            yield f"{path} has a syntax error ({error}): its imports are unknown, it counts as changed"
        if self.everything:
            yield f"every test depends on {', '.join(self.everything)}: all tests are selected"
        if self.is_empty:
            yield "no test depends on a changed file: nothing to run"
        for tier in () if self.is_empty else self.tiers:
            reason = f", such as {min(tier.selected, key=_length)}" if tier.selected and not self.everything else ""
            yield f"  {tier.name:<11}  {len(tier.selected)} of {tier.total} test files{reason}"
        yield self._skipped()

    def listing(self) -> Iterator[str]:
        """Every selected file with the shortest chain of imports to a changed file."""
        return (str(chain) for tier in self.tiers for chain in tier.selected)

    def _differing(self) -> str:
        files, short = self.changes.files, self.changes.commit[:8]
        revision = short if self.changes.commit == self.changes.revision else f"{self.changes.revision} ({short})"
        if not files:
            return f"no file differs from {revision}"
        named = ", ".join(files[:_NAMED_FILES])
        more = f" and {len(files) - _NAMED_FILES} more" if len(files) > _NAMED_FILES else ""
        return f"{len(files)} {'file differs' if len(files) == 1 else 'files differ'} from {revision}: {named}{more}"

    def _skipped(self) -> str:
        skipped, total = sum(tier.skipped for tier in self.tiers), sum(tier.total for tier in self.tiers)
        if not skipped:
            return f"skipped: none of {total} test files"
        by_tier = ", ".join(f"{tier.name} {tier.skipped}" for tier in self.tiers)
        return f"skipped: {skipped} of {total} test files ({by_tier}); ./run test runs them all"


def select(changes: Changes) -> Selection:
    """Return the tests that depend on the changed files."""
    existing = repository_files(changes.root)
    with _collector_paused():
        sources = _read(changes.root, {*existing, *changes.files})
        graph = _graph(changes.root, sources, {*existing, *changes.files})
    unreadable = {path: source.error for path, source in sorted(sources.items()) if source.error is not None}
    everything = tuple(path for path in EVERYTHING if path in changes.files)
    tests = sorted(path for path in existing if tier_of(path))
    if everything:
        chains = {path: Chain((path, everything[0])) for path in tests}
    else:
        chains = graph.chains({*_changed_nodes(changes), *unreadable})
    tiers = (_tier(name, [path for path in tests if tier_of(path) == name], chains) for name in TIERS)
    return Selection(changes, tuple(tiers), everything, unreadable)


def repository_graph(root: Path) -> Graph:
    """Return the dependencies between all files of the repository."""
    files = repository_files(root)
    with _collector_paused():
        return _graph(root, _read(root, files), files)


def _graph(root: Path, sources: Mapping[str, SourceFile], files: Iterable[str]) -> Graph:
    return Graph(sources, [path for path in files if path not in sources], _programs(root))


def _tier(name: str, tests: list[str], chains: Mapping[str, Chain]) -> Tier:
    return Tier(name, tuple(chains[path] for path in tests if path in chains), len(tests))


def _read(root: Path, paths: Iterable[str]) -> dict[str, SourceFile]:
    """All Python files; a deleted one is there without references, for others still name it."""
    python = sorted(path for path in paths if path.endswith(".py"))
    return {path: _read_one(root / path) if (root / path).is_file() else SourceFile() for path in python}


def _read_one(path: Path) -> SourceFile:
    return read_source(path.read_bytes(), is_conftest=path.name == "conftest.py")


def _changed_nodes(changes: Changes) -> Iterator[str]:
    """The changed files; for a conftest.py of which only fixtures changed, these fixtures."""
    for path in changes.files:
        fixtures = _only_fixtures(changes, path) if PurePosixPath(path).name == "conftest.py" else None
        if fixtures is None:
            yield path
        else:
            yield from (fixture_node(path, name) for name in fixtures)


def _only_fixtures(changes: Changes, path: str) -> frozenset[str] | None:
    old, file = changes.old_content(path), changes.root / path
    return changed_fixtures(old, file.read_bytes()) if old is not None and file.is_file() else None


def _programs(root: Path) -> dict[str, str]:
    """Modules behind the commands that the project installs."""
    file = root / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}) if file.is_file() else {}
    return {name: target.partition(":")[0] for name, target in project.get("scripts", {}).items()}


def _length(chain: Chain) -> int:
    return len(chain.nodes)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Syntax trees of all files are a million objects without cycles: looking for those doubles the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
