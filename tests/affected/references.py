"""Names in one Python file that can make it depend on other files of the repository: imports, strings, fixtures.

A program that starts another process, and a test that reads a document, name the other file in a string. Strings count
as imports, except docstrings: a dotted name anywhere in a string, a path as the whole string, a plain word such as
`docs` only as a part of a path (`ROOT / "docs"`) or after `-m`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.public_api.packages import exports_of

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MODULE_FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.py")
_WORD = re.compile(r"[A-Za-z_]\w*")
#: A string where paths are made, in source text; folders of a test's own are not those of the repository.
_PART = re.compile(r'(?:(?<!tmp_path) / |\b(?:Path|joinpath|with_name)\(|"-m", )f?"([\w./-]+)"')


@dataclass(frozen=True, slots=True)
class SourceFile:
    """What one Python file names."""

    #: Names of import statements; for `from a import b` the name is `a.b`.
    imported: frozenset[str] = frozenset()
    #: Dotted names in strings.
    dotted: frozenset[str] = frozenset()
    #: Strings that are a path if the repository has it: from its root, or from the folder of the file.
    paths: frozenset[str] = frozenset()
    #: Parameters of functions and words in strings: the fixtures among them are requested.
    words: frozenset[str] = frozenset()
    #: Functions at the top level: the fixtures of a conftest.py are among them.
    functions: frozenset[str] = frozenset()
    #: Names that an `__init__.py` with a public API exports -> the modules next to it that define them.
    exports: Mapping[str, str] = field(default_factory=dict)
    #: The syntax error of a file that cannot be read.
    error: str = ""


def read_source(source: bytes) -> SourceFile:
    """Return the references of a file, or its syntax error."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return SourceFile(error=str(error))
    reader = _Reader()
    reader.visit(tree)
    strings = reader.strings
    return SourceFile(
        imported=frozenset(reader.imported),
        dotted=frozenset(name for text in strings if "." in text for name in _DOTTED.findall(text)),
        paths=frozenset(_paths(strings, source.decode(errors="replace"))),
        words=frozenset(reader.parameters.union(text for text in strings if _WORD.fullmatch(text))),
        functions=frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef)),
        exports=exports_of(tree) if b"submod_attrs" in source else {},
    )


class _Reader(ast.NodeVisitor):
    """Collects imports, strings and names of parameters."""

    def __init__(self) -> None:
        self.imported: set[str] = set()
        self.strings: set[str] = set()
        self.parameters: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        """Leave out imports for type checkers alone: nothing is executed."""
        if getattr(node.test, "attr", getattr(node.test, "id", "")) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.imported.update(each.name for each in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        start = "." * node.level + (f"{node.module}." if node.module else "")
        self.imported.update(start + each.name for each in node.names)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out docstrings."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.add(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        self.parameters.add(node.arg)


def _paths(strings: set[str], source: str) -> Iterator[str]:
    for text in strings:
        # What follows a folder in an f-string begins with a slash.
        relative = text.removeprefix("./").lstrip("/")
        if len(text) < 200 and ("/" in relative or "." in relative.strip(".")):
            yield relative.rstrip("/")
        yield from _MODULE_FILE.findall(text)
    yield from (part.strip("/") for part in _PART.findall(source.replace('" / "', "/")))
