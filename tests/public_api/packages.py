"""Names for others than this project: what an `__init__.py` exports of the modules next to it.

Files of users import them (`dags`, `plugins`, features of other distributions). Within the project names are imported
from their modules; contracts in `pyproject.toml` say which modules are private to a package.

An export is declared once, as the dictionary that `lazy_loader.attach` is given: nothing is imported before it is used.
The stub next to it (`__init__.pyi`) says the same to type checkers and editors, and is made from it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Whose imports count.
CODE = ("mirror_lib", "spark_jobs", "dags", "plugins", "examples/feature")
#: The modules right below it are everybody's.
TOP = "mirror_lib"


@dataclass(frozen=True, slots=True)
class PublicApi:
    """What one package exports."""

    package: str
    #: Exported name -> name of the module, from the package on.
    exports: Mapping[str, str]

    def stub(self) -> str:
        """The text of the package's `__init__.pyi`."""
        by_module: dict[str, list[str]] = {}
        for name, module in self.exports.items():
            by_module.setdefault(module, []).append(name)
        lines = [f"from .{module} import {name} as {name}" for module in by_module for name in by_module[module]]
        return "\n".join(sorted(lines, key=str.lower)) + "\n"


def exports_of(tree: ast.AST) -> dict[str, str]:
    """The names that an `__init__.py` exports, and their modules; none without a public API."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "submod_attrs":
            declared: dict[str, list[str]] = ast.literal_eval(node.value)
            return {name: module for module, names in declared.items() for name in names}
    return {}


def public_apis(root: Path) -> dict[str, PublicApi]:
    """The packages that have a public API, by name."""
    found = {}
    for path in sorted((root / TOP).rglob("__init__.py")):
        if exports := exports_of(ast.parse(path.read_text(encoding="utf-8"))):
            package = _dotted(path.relative_to(root))
            found[package] = PublicApi(package, exports)
    return found


def stub_of(root: Path, package: str) -> Path:
    """Where the stub of a package is."""
    return root.joinpath(*package.split("."), "__init__.pyi")


def unused(root: Path) -> list[str]:
    """Exported names that no other package imports."""
    wanted = {
        f"{node.module}.{each.name}"
        for folder in CODE
        for path in (root / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    exported = (f"{api.package}.{name}" for api in public_apis(root).values() for name in api.exports)
    return [name for name in exported if name not in wanted]


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")
