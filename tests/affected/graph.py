"""Which tests depend on which files, and by which chain of imports.

The graph holds files, folders (a string that names one stands for all files below) and fixtures of conftest.py files: a
test depends on the fixtures that it requests, and not on everything that its conftest.py imports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath

from tests.affected.references import References, SourceFile

TIERS = ("unit", "integration", "e2e")
#: End-to-end tests start the whole program as processes: the command, Spark jobs, Airflow.
PROCESS_FOLDERS = ("mirror_lib", "spark_jobs", "dags", "plugins")
#: Files that every test depends on: versions of packages, options of pytest, hooks.
EVERYTHING = ("requirements.lock", "pyproject.toml", "tests/conftest.py")


@dataclass(frozen=True, slots=True)
class Chain:
    """A file and the way from it to a changed one: each node depends on the next, the last one is changed."""

    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return " <- ".join((self.nodes[0], *map(_title, self.nodes[1:]))) + " (changed)"


def tier_of(path: str) -> str | None:
    """Return the tier of a test file, None for any other file."""
    parts = PurePosixPath(path).parts
    is_test = len(parts) > 2 and parts[0] == "tests" and parts[1] in TIERS
    return parts[1] if is_test and parts[-1].startswith("test_") and parts[-1].endswith(".py") else None


def fixture_node(conftest: str, name: str) -> str:
    """Return the node of a fixture."""
    return f"{conftest}::{name}"


class Graph:
    """Dependencies between the files of the repository.

    Args:
        sources: All Python files by path; deleted files are among them, without references.
        others: Paths of all other files, deleted ones included.
        programs: Modules behind names of programs, such as `mirror`, as a path-like word is used to start one.
    """

    def __init__(
        self, sources: Mapping[str, SourceFile], others: Collection[str] = (), programs: Mapping[str, str] | None = None
    ) -> None:
        self._sources = sources
        self._programs = programs or {}
        # A string that equals the path of tests is another folder's name: no test reads the sources of others.
        tests = frozenset(each for each in sources if tier_of(each))
        self._files = frozenset((*sources, *others)) - tests
        self._folders = _folders(self._files) - _folders(tests)
        self._folders_with_modules = _folders(sources)
        self._modules = _modules(sources)
        self._exports = {
            f"{package}.{name}": f"{package}.{module}.{name}"
            for path, source in sources.items()
            for package in (path.removesuffix("/__init__.py").replace("/", "."),)
            for name, module in source.exports.items()
        }
        self._folders_of_code = frozenset(str(PurePosixPath(path).parent) for path in sources)
        self._dependents: dict[str, set[str]] = defaultdict(set)
        self._globs: dict[str, set[str]] = defaultdict(set)
        for path, source in sources.items():
            self._add(path, source)

    def chains(self, changed: Iterable[str]) -> dict[str, Chain]:
        """Return the shortest chain of every node that depends on a changed one; changed nodes are among them."""
        found = {node: Chain((node,)) for node in sorted(changed)}
        waiting = list(found)
        for node in waiting:
            for dependent in sorted(self._direct_dependents(node)):
                if dependent not in found:
                    found[dependent] = Chain((dependent, *found[node].nodes))
                    waiting.append(dependent)
        return found

    def _direct_dependents(self, node: str) -> set[str]:
        if "::" in node:
            return self._dependents.get(node, set())
        path = PurePosixPath(node)
        names = (node, *map(str, path.parents))
        found = {dependent for name in names for dependent in self._dependents.get(name, ())}
        found |= {test for pattern, tests in self._globs.items() if fnmatch(path.name, pattern) for test in tests}
        return found if node in self._sources else found | self._readers(path)

    def _readers(self, path: PurePosixPath) -> set[str]:
        """Modules that read a file next to them: those of the nearest folder with modules."""
        folders = (str(folder) for folder in path.parents)
        nearest = next((folder for folder in folders if folder in self._folders_of_code), None)
        return {each for each in self._sources if nearest and str(PurePosixPath(each).parent) == nearest}

    def _add(self, path: str, source: SourceFile) -> None:
        if PurePosixPath(path).name == "conftest.py":
            # Importing a conftest.py defines fixtures; what they use counts for the tests that request them.
            for name, references in source.fixtures.items():
                self._link(fixture_node(path, name), path, references)
            return
        self._link(path, path, source.references)
        if tier := tier_of(path):
            self._link_test(path, tier)

    def _link(self, node: str, path: str, references: References) -> None:
        folder = PurePosixPath(path).parent
        targets = {each for name in references.imported for each in self._imported(_absolute(name, path))}
        targets |= {each for name in references.named for each in self._named(name)}
        targets |= {each for text in references.paths for each in self._at_path(text, folder)}
        targets |= {each for text in references.parts for each in self._at_part(text, folder)}
        if path.startswith("tests/"):
            targets |= {each for texts in references.lists for each in self._listed(texts)}
        targets |= set(self._fixtures(path, references.requested, but=node))
        for target in targets - {node}:
            self._dependents[target].add(node)
        if tier_of(path):
            for pattern in references.globs:
                # A pattern of stars alone matches everything: the folder that it searches is named, too.
                if (name := PurePosixPath(pattern).name).strip("*"):
                    self._globs[name].add(node)

    def _link_test(self, path: str, tier: str) -> None:
        for conftest in self._conftests(path):
            self._dependents[conftest].add(path)
            for name in self._sources[conftest].autouse:
                self._dependents[fixture_node(conftest, name)].add(path)
        if tier == "e2e":
            for folder in PROCESS_FOLDERS:
                self._dependents[folder].add(path)

    def _conftests(self, path: str) -> Iterator[str]:
        candidates = (str(folder / "conftest.py") for folder in PurePosixPath(path).parents)
        return (each for each in candidates if each in self._sources)

    def _fixtures(self, path: str, requested: frozenset[str], *, but: str) -> Iterator[str]:
        for conftest in self._conftests(path):
            for name in requested & self._sources[conftest].fixtures.keys():
                if fixture_node(conftest, name) != but:
                    yield fixture_node(conftest, name)

    def _imported(self, name: str) -> Iterator[str]:
        """Files that an import executes: the module, and the packages above it.

        What a package exports is looked up in the module that defines it.
        """
        parts = self._exports.get(name, name).split(".")
        for length in range(len(parts), 0, -1):
            yield from self._modules.get(".".join(parts[:length]), ())

    def _named(self, name: str) -> Iterator[str]:
        """Files of a module named in a string; of a package all, since resources and submodules are found by it."""
        parts = name.split(".")
        for length in range(len(parts), 1, -1):
            module = ".".join(parts[:length])
            if module in self._modules:
                yield from self._imported(module)
                yield from {"/".join(parts[:length])} & self._folders
                return

    def _at_path(self, text: str, folder: PurePosixPath) -> Iterator[str]:
        for path in (text, str(folder / text)) if text.strip("./") else ():
            if path in self._files or path in self._folders:
                yield path

    def _at_part(self, text: str, folder: PurePosixPath) -> Iterator[str]:
        if text in self._programs:
            yield from self._imported(self._programs[text])
        yield from self._at_path(text, folder)
        for above in folder.parents if text.strip("./") else ():
            path = str(above / text)
            if path in self._files or path in self._folders - self._folders_with_modules:
                yield path

    def _listed(self, texts: tuple[str, ...]) -> Iterator[str]:
        found = [text for text in texts if text in self._files or text in self._folders]
        return iter(found if len(found) > 1 else ())


def _folders(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(str(folder) for path in paths for folder in PurePosixPath(path).parents) - {"."}


def _modules(paths: Iterable[str]) -> dict[str, list[str]]:
    """Files by the name of their module; a module that became a package has two."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        found[path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")].append(path)
    return dict(found)


def _absolute(name: str, path: str) -> str:
    if not name.startswith("."):
        return name
    relative = name.lstrip(".")
    package = PurePosixPath(path).parent.parts
    return ".".join((*package[: len(package) - (len(name) - len(relative)) + 1], relative))


def _title(node: str) -> str:
    """The name of a module, the path of anything else."""
    if "::" in node or not node.endswith(".py") or tier_of(node):
        return node
    return next(iter(_modules([node])))
