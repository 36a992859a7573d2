"""Names in one Python file that can make it depend on other files of the repository: imports, strings, fixtures.

A program that starts another process, and a test that reads a document, name the other file in a string. Strings count
as imports, except docstrings: a dotted name anywhere in a string, a path as the whole string, a plain word such as
`docs` only as a part of a path (`ROOT / "docs"`) or after `-m`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from tests.faces.packages import exports_of

#: Calls whose string arguments are parts of a path, or names of modules and folders.
_PATH_CALLS = {"Path", "PurePath", "PurePosixPath", "joinpath", "join", "with_name", "open", "files", "build_graph"}
_PATH_CALLS |= {"import_module", "find_spec", "run_module", "run_path", "walk_packages", "iter_modules"}
_PATH_CALLS |= {"spec_from_file_location"}
#: Calls whose string arguments name loggers or prefixes of names, never files.
_NAME_CALLS = {"getLogger", "get_logger", "at_level", "set_level", "startswith"}
_GLOB_CALLS = {"glob", "rglob"}
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_IMPORT_IN_TEXT = re.compile(r"\bfrom\s+([\w.]+)\s+import\s+\(?([\w, \t]+|[\w,\s]+\))")
_PATH_IN_TEXT = re.compile(r"[\w.-]+(?:/[\w.-]+)+")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class References:
    """What one file, or one fixture, names."""

    #: Dotted names of import statements; for `from a import b` the name is `a.b`.
    imported: frozenset[str] = frozenset()
    #: Dotted names in strings.
    named: frozenset[str] = frozenset()
    #: Strings that are a path if the repository has it: from its root, or from the folder of the file.
    paths: frozenset[str] = frozenset()
    #: Plain words used as a part of a path or as the name of a program.
    parts: frozenset[str] = frozenset()
    #: Strings listed together, such as `("dags", "plugins")`: each is a path if another one is.
    lists: frozenset[tuple[str, ...]] = frozenset()
    #: Patterns given to `glob`.
    globs: frozenset[str] = frozenset()
    #: Parameters of functions and words in strings: the fixtures among them are requested.
    requested: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """References of one Python file; of a conftest.py, those of each of its fixtures instead."""

    references: References = References()
    fixtures: Mapping[str, References] = field(default_factory=dict)
    #: Fixtures that every test below the folder uses.
    autouse: frozenset[str] = frozenset()
    #: Names that an `__init__.py` with a face exports -> the modules beside it that define them.
    exports: Mapping[str, str] = field(default_factory=dict)
    #: The syntax error of a file that cannot be read.
    error: str | None = None


def read_source(source: bytes, *, is_conftest: bool = False) -> SourceFile:
    """Return the references of a file, or its syntax error."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        return SourceFile(error=f"{line}{getattr(error, 'msg', error)}")
    if not is_conftest:
        return SourceFile(references_of([tree]), exports=exports_of(tree))
    found = _Definitions(tree)
    return SourceFile(fixtures=found.fixtures(), autouse=found.autouse())


def references_of(nodes: Iterable[ast.AST]) -> References:
    """Return the references of statements with everything inside them."""
    reader = _Reader()
    for node in nodes:
        reader.read(node)
    return reader.references()


def changed_fixtures(old: bytes, new: bytes) -> frozenset[str] | None:
    """Return the fixtures in which two versions of a conftest.py differ; None if anything else differs."""
    try:
        before, after = _Definitions(ast.parse(old)), _Definitions(ast.parse(new))
    except (SyntaxError, ValueError):
        return None
    if before.other_text() != after.other_text() or before.by_fixture.keys() != after.by_fixture.keys():
        return None
    pairs = ((name, before.by_fixture[name], after.by_fixture[name]) for name in after.by_fixture)
    return frozenset(name for name, one, other in pairs if ast.dump(one) != ast.dump(other))


class _Reader:
    """Collects references; one walk over the tree, since all files of the repository are read."""

    def __init__(self) -> None:
        self._imported: set[str] = set()
        self._strings: set[str] = set()
        self._parts: set[str] = set()
        self._lists: set[tuple[str, ...]] = set()
        self._globs: set[str] = set()
        self._parameters: set[str] = set()
        self._ignored: set[int] = set()

    def read(self, root: ast.AST) -> None:
        waiting: list[Any] = [root]
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind is ast.If and _is_type_checking(node.test):
                waiting += node.orelse
                continue
            if kind in _HANDLERS:
                _HANDLERS[kind](self, node)
            for name in node._fields:
                child = getattr(node, name, None)
                if type(child) is list:
                    waiting += [each for each in child if isinstance(each, ast.AST)]
                elif isinstance(child, ast.AST):
                    waiting.append(child)

    def references(self) -> References:
        texts = self._strings
        named = {name for text in texts if "." in text for name in _DOTTED.findall(text)}
        named |= {name for text in texts if "import" in text for name in _imports_in(text)}
        paths = {_plain(text) for text in texts if len(text) < 200 and ("/" in text or "." in text)}
        inner = {path for text in texts if ".py" in text for path in _PATH_IN_TEXT.findall(text)}
        return References(
            imported=frozenset(self._imported),
            named=frozenset(named),
            paths=frozenset(paths | {path for path in inner if path.endswith(".py")}),
            parts=frozenset(_plain(each).rstrip(".") for each in self._parts),
            lists=frozenset(self._lists),
            globs=frozenset(self._globs),
            requested=frozenset(self._parameters.union(text for text in texts if _WORD.fullmatch(text))),
        )

    def _import(self, node: ast.Import) -> None:
        self._imported.update(each.name for each in node.names)

    def _import_from(self, node: ast.ImportFrom) -> None:
        start = "." * node.level + (f"{node.module}." if node.module else "")
        self._imported.update((start + each.name).removesuffix(".*") for each in node.names)

    def _constant(self, node: ast.Constant) -> None:
        if type(node.value) is str and id(node) not in self._ignored:
            self._strings.add(node.value)

    def _expression(self, node: ast.Expr) -> None:
        if type(node.value) is ast.Constant:
            # A docstring, or another string without an effect.
            self._ignored.add(id(node.value))

    def _operation(self, node: ast.BinOp) -> None:
        if not isinstance(node.op, ast.Div) or id(node) in self._ignored:
            return
        operands = [node.right]
        left = node.left
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div):
            self._ignored.add(id(left))
            operands.append(left.right)
            left = left.left
        if not (isinstance(left, ast.Name) and left.id == "tmp_path"):
            self._parts.update(_joined([left, *reversed(operands)]))

    def _display(self, node: ast.Tuple | ast.List | ast.Set) -> None:
        texts = tuple(_texts(node.elts))
        if "-m" in texts:
            self._parts.update(texts[texts.index("-m") + 1 :][:1])
        elif len(texts) > 1:
            self._lists.add(tuple(map(_plain, texts)))

    def _call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _PATH_CALLS:
            self._parts.update(_texts(node.args), _joined(node.args))
        elif name in _GLOB_CALLS:
            self._globs.update(_texts(node.args))
        elif name in _NAME_CALLS:
            values = (*node.args, *(each.value for each in node.keywords))
            self._ignored.update(id(inner) for value in values for inner in ast.walk(value))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        listed = node.args
        self._parameters.update(each.arg for each in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs))


_HANDLERS: Mapping[type, Callable[[_Reader, Any], None]] = {
    ast.Import: _Reader._import,
    ast.ImportFrom: _Reader._import_from,
    ast.Constant: _Reader._constant,
    ast.Expr: _Reader._expression,
    ast.BinOp: _Reader._operation,
    ast.Tuple: _Reader._display,
    ast.List: _Reader._display,
    ast.Set: _Reader._display,
    ast.Call: _Reader._call,
    ast.FunctionDef: _Reader._function,
    ast.AsyncFunctionDef: _Reader._function,
}


class _Definitions:
    """The top level of a conftest.py: its fixtures, and which statement defines which name."""

    def __init__(self, tree: ast.Module) -> None:
        self.by_fixture: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._autouse: set[str] = set()
        self._others: list[ast.stmt] = []
        self._by_name: dict[str, list[ast.stmt]] = {}
        for statement in tree.body:
            self._add(statement)

    def fixtures(self) -> dict[str, References]:
        """References of each fixture with the functions, classes and imports that it uses."""
        return {name: self._closure(node) for name, node in self.by_fixture.items()}

    def autouse(self) -> frozenset[str]:
        return frozenset(self._autouse)

    def other_text(self) -> str:
        """Everything but the fixtures; autouse fixtures count as the rest."""
        kept = (self.by_fixture[name] for name in sorted(self._autouse))
        return "\n".join(ast.dump(each) for each in (*self._others, *kept))

    def _add(self, statement: ast.stmt) -> None:
        for name in _bound_names(statement):
            self._by_name.setdefault(name, []).append(statement)
        decorator = _fixture_decorator(statement)
        if decorator is None or not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            self._others.append(statement)
            return
        options = {each.arg: each.value for each in decorator.keywords} if isinstance(decorator, ast.Call) else {}
        named = options.get("name")
        name = str(named.value) if isinstance(named, ast.Constant) else statement.name
        self.by_fixture[name] = statement
        if "autouse" in options:
            self._autouse.add(name)

    def _closure(self, fixture: ast.stmt) -> References:
        found: list[ast.stmt] = []
        waiting = [fixture]
        while waiting:
            statement = waiting.pop()
            if statement in found:
                continue
            found.append(statement)
            for name in {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}:
                waiting += self._by_name.get(name, ())
        return references_of(found)


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.alias):
            yield node.asname or node.name.split(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        # The variables of a comprehension are its own.
        waiting += (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.comprehension))


def _fixture_decorator(statement: ast.stmt) -> ast.expr | None:
    for decorator in getattr(statement, "decorator_list", ()):
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == "fixture":
            found: ast.expr = decorator
            return found
    return None


def _is_type_checking(test: ast.expr) -> bool:
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _texts(nodes: Iterable[ast.expr]) -> Iterator[str]:
    return (each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str))


def _imports_in(text: str) -> Iterator[str]:
    """Names that code in a string imports; `import a.b` has a dot and is found anyway."""
    for module, names in _IMPORT_IN_TEXT.findall(text):
        yield from (f"{module}.{name}" for name in _WORD.findall(names))


def _joined(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """Paths made of strings that follow each other: `docs/page.md` for `ROOT / "docs" / "page.md"`."""
    for is_text, run in groupby(nodes, lambda each: isinstance(each, ast.Constant) and isinstance(each.value, str)):
        if is_text:
            yield "/".join(_texts(run))


def _plain(path: str) -> str:
    """The path without `./` and the last slash; what follows a folder in an f-string begins with a slash."""
    path = path.removeprefix("./").rstrip("/")
    return path[1:] if path.startswith("/") and path.count("/") > 1 else path
