"""What tests, tools and examples import of this project exists, also in programs that stand inside of strings.

Only the product and the tools are type-checked; a name that has moved would be found by running alone, and most of
these programs run on brokers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

_ROOT = Path(__file__).parents[3]
_OURS = ("mirror_lib", "spark_jobs", "tests", "tools")
_LOOKED_AT = ("tests", "tools", "examples", "dags", "plugins", "docs")
#: Their tests invent names.
_INVENTED = frozenset({Path(__file__).name, "test_mutants.py", "test_public_api.py"})


@cache
def _names_of(module: str) -> frozenset[str] | None:
    """The names that a module defines or has below it; None if there is no such module, a star if it makes some."""
    base = _ROOT / Path(*module.split("."))
    below = {each.stem for each in base.iterdir() if each.name != "__pycache__"} if base.is_dir() else set()
    file = next((each for each in (base / "__init__.py", base.with_suffix(".py")) if each.is_file()), base)
    if not file.is_file():
        return frozenset(below) if below else None
    found = set(below)
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name.split(".")[0])
    return frozenset(found | {"*"} if "__getattr__" in found else found)


def _missing(source: str) -> Iterator[str]:
    """The imports of a program that lead nowhere."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0) if module.split(".")[0] in _OURS:
                known = _names_of(module)
                if known is None:
                    yield module
                elif "*" not in known:
                    yield from (f"{module}.{each.name}" for each in names if each.name not in {"*", *known})
            case ast.Import(names=names):
                for each in names:
                    if each.name.split(".")[0] in _OURS and _names_of(each.name) is None:
                        yield each.name
            case ast.Constant(value=str(text)) if "import " in text and any(name in text for name in _OURS):
                try:
                    inner = ast.parse(dedent(text))
                except (SyntaxError, ValueError):
                    continue
                if any(isinstance(each, ast.Import | ast.ImportFrom) for each in inner.body):
                    yield from _missing(dedent(text))


@pytest.mark.parametrize("folder", _LOOKED_AT)
def test_imports_of_this_project_lead_somewhere(folder: str) -> None:
    found = {
        str(path.relative_to(_ROOT)): missing
        for path in (_ROOT / folder).rglob("*.py")
        if path.name not in _INVENTED and (missing := sorted(set(_missing(path.read_text()))))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("program", "missing"),
    [
        ("from mirror_lib.errors import MirrorError", []),
        ("from mirror_lib.errors import NoSuchError", ["mirror_lib.errors.NoSuchError"]),
        ("from mirror_lib.relay.run import replicate", ["mirror_lib.relay.run"]),
        ("import mirror_lib.no_such", ["mirror_lib.no_such"]),
        ("from mirror_lib.copy import run", []),
        ("CODE = '''\n    from mirror_lib.errors import NoSuchError\n'''", ["mirror_lib.errors.NoSuchError"]),
    ],
)
def test_a_name_that_is_gone_is_found(program: str, missing: list[str]) -> None:
    assert list(_missing(program)) == missing
