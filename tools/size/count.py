"""Counts the lines of Python sources by kind."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

#: The folder of features; the rest of `mirror_lib` is the core.
FEATURES = "features"
_SKIPPED = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of lines; they add up to `lines`, as `wc -l` counts them."""

    files: int = 0
    code: int = 0
    docstrings: int = 0
    comments: int = 0
    blanks: int = 0

    @property
    def lines(self) -> int:
        """All lines."""
        return self.code + self.docstrings + self.comments + self.blanks

    def __add__(self, other: Size) -> Size:
        """The sum of both."""
        return Size(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def count_source(text: str) -> Size:
    """Count the lines of one module. A line with code and a comment is code.

    Raises:
        SyntaxError: the text is not Python.
    """
    docstrings = _docstring_lines(ast.parse(text))
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _SKIPPED:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= docstrings
    comments -= code
    total = text.count("\n") + (not text.endswith("\n") and bool(text))
    return Size(1, len(code), len(docstrings), len(comments), total - len(code) - len(docstrings) - len(comments))


def _docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def count_packages(root: Path, tops: Iterable[str]) -> dict[str, Size]:
    """Count packages: each package of `mirror_lib`, each of its features, and other folders as a whole.

    Args:
        root: the checkout.
        tops: folders at its top level.
    """
    found: dict[str, Size] = {}
    for top in tops:
        for path in sorted((root / top).rglob("*.py")):
            name = package_of(path.relative_to(root))
            found[name] = found.get(name, Size()) + count_source(path.read_text(encoding="utf-8"))
    return found


def package_of(path: Path) -> str:
    """The package under which a module is counted."""
    parts = path.parts
    if parts[0] != "mirror_lib":
        return parts[0]
    if len(parts) > 3 and parts[1] == FEATURES:
        return f"mirror_lib/{FEATURES}/{parts[2]}"
    return "mirror_lib" if len(parts) == 2 else f"mirror_lib/{parts[1]}"


def core_of(sizes: Mapping[str, Size]) -> Size:
    """The sum of `mirror_lib` without its features."""
    inside = (size for name, size in sizes.items() if name.split("/")[0] == "mirror_lib" and not is_feature(name))
    return sum(inside, Size())


def is_feature(name: str) -> bool:
    """True for the package of a feature."""
    return name.startswith(f"mirror_lib/{FEATURES}")
