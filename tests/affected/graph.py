"""Which tests depend on which files, and by which chain of imports.

A test depends on every conftest.py above it, but on what a conftest.py imports only if it requests one of its fixtures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.affected.changes import repository_files
from tests.affected.references import SourceFile, read_source

TIERS = ("unit", "integration", "e2e")
#: End-to-end tests start the whole program as processes: the command, Spark jobs, Airflow.
PROCESS_FOLDERS = ("mirror_lib", "spark_jobs", "dags", "plugins")


@dataclass(frozen=True, slots=True)
class Chain:
    """A file and the way from it to a changed one: each node depends on the next, the last one is changed."""

    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return " <- ".join(self.nodes) + " (changed)"


def tier_of(path: str) -> str | None:
    """Return the tier of a test file, None for any other file."""
    parts = PurePosixPath(path).parts
    is_test = len(parts) > 2 and parts[0] == "tests" and parts[1] in TIERS
    return parts[1] if is_test and parts[-1].startswith("test_") and parts[-1].endswith(".py") else None


def repository_graph(root: Path, gone: Collection[str] = ()) -> Graph:
    """Return the dependencies between all files of the repository; deleted ones are still named by others."""
    paths = {*repository_files(root), *gone}
    python = sorted(path for path in paths if path.endswith(".py"))
    sources = {
        path: read_source((root / path).read_bytes()) if (root / path).is_file() else SourceFile() for path in python
    }
    return Graph(sources, paths - sources.keys())


class Graph:
    """Dependencies between the files of the repository.

    Args:
        sources: All Python files by path.
        others: Paths of all other files.
    """

    def __init__(self, sources: Mapping[str, SourceFile], others: Collection[str] = ()) -> None:
        self.sources = sources
        # A string that equals the path of tests is another folder's name: no test reads the sources of others.
        tests = frozenset(each for each in sources if tier_of(each))
        files = frozenset((*sources, *others)) - tests
        self._named = files | (_folders(files) - _folders(tests))
        self._folders_of_code = frozenset(str(PurePosixPath(path).parent) for path in sources)
        self._modules: dict[str, list[str]] = defaultdict(list)
        for path in sources:
            self._modules[_module(path)].append(path)
        self._exports = {
            f"{_module(path)}.{name}": f"{_module(path)}.{module}.{name}"
            for path, source in sources.items()
            for name, module in source.exports.items()
        }
        self._dependents: dict[str, set[str]] = defaultdict(set)
        for path in sources:
            # What a conftest.py uses counts for the tests that request its fixtures.
            if PurePosixPath(path).name != "conftest.py":
                for target in self._targets(path):
                    self._dependents[target].add(path)

    def chains(self, changed: Iterable[str]) -> dict[str, Chain]:
        """Return the shortest chain of every file that depends on a changed one; changed files are among them."""
        found = {path: Chain((path,)) for path in sorted(changed)}
        waiting = list(found)
        for path in waiting:
            for dependent in sorted(self._direct_dependents(path) - found.keys()):
                found[dependent] = Chain((dependent, *found[path].nodes))
                waiting.append(dependent)
        return found

    def _direct_dependents(self, path: str) -> set[str]:
        names = (path, *map(str, PurePosixPath(path).parents))
        found = {dependent for name in names for dependent in self._dependents.get(name, ())}
        return found if path in self.sources else found | self._readers(names[1:])

    def _readers(self, folders: tuple[str, ...]) -> set[str]:
        """Modules that read a file next to them: those of the nearest folder with modules."""
        nearest = next((folder for folder in folders if folder in self._folders_of_code), None)
        return {each for each in self.sources if str(PurePosixPath(each).parent) == nearest}

    def _targets(self, path: str) -> set[str]:
        found = set(self._references(path))
        if tier := tier_of(path):
            found.update(PROCESS_FOLDERS if tier == "e2e" else ())
            words = self.sources[path].words
            for conftest in self._conftests(path):
                found.add(conftest)
                if words & self.sources[conftest].functions:
                    found.update(self._references(conftest))
                    words |= self.sources[conftest].words
        return found - {path}

    def _conftests(self, path: str) -> Iterator[str]:
        candidates = (str(folder / "conftest.py") for folder in PurePosixPath(path).parents)
        return (each for each in candidates if each in self.sources)

    def _references(self, path: str) -> Iterator[str]:
        source, folder = self.sources[path], PurePosixPath(path).parent
        for name in source.imported:
            yield from self._imported(_absolute(name, folder))
        for name in source.dotted:
            yield from self._dotted(name)
        for name in source.paths:
            yield from {name, str(folder / name)} & self._named

    def _imported(self, name: str) -> Iterator[str]:
        """Files that an import executes: the module, and the packages above it.

        What a package exports is looked up in the module that defines it.
        """
        parts = self._exports.get(name, name).split(".")
        for length in range(len(parts), 0, -1):
            yield from self._modules.get(".".join(parts[:length]), ())

    def _dotted(self, name: str) -> Iterator[str]:
        """Files of a module named in a string; of a package all, since resources and submodules are found by it."""
        parts = name.split(".")
        for length in range(len(parts), 1, -1):
            if ".".join(parts[:length]) in self._modules:
                yield from self._imported(".".join(parts[:length]))
                yield from {"/".join(parts[:length])} & self._named
                return


def _folders(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(str(folder) for path in paths for folder in PurePosixPath(path).parents) - {"."}


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _absolute(name: str, folder: PurePosixPath) -> str:
    relative = name.lstrip(".")
    level = len(name) - len(relative)
    return ".".join((*folder.parts[: len(folder.parts) - level + 1], relative)) if level else name
