"""Packages have public APIs: others import what a package exports, and nothing behind it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.public_api.packages import public_apis, reaching_past, stub_of, unused

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package `a` with a public API for `Plan`, and a module `b.use` of another one."""
    for folder in ("a", "b"):
        (tmp_path / "mirror_lib" / folder).mkdir(parents=True)
        (tmp_path / "mirror_lib" / folder / "__init__.py").write_text("")
    (tmp_path / "mirror_lib" / "__init__.py").write_text("")
    (tmp_path / "mirror_lib" / "a" / "__init__.py").write_text(
        'import lazy_loader\n\nlazy_loader.attach(__name__, submod_attrs={"plan": ["Plan"]})\n'
    )
    (tmp_path / "mirror_lib" / "a" / "plan.py").write_text("class Plan: ...\n")
    (tmp_path / "mirror_lib" / "a" / "other.py").write_text("from mirror_lib.a.plan import Plan\n")
    return tmp_path


@pytest.mark.parametrize(
    ("statement", "past", "unused_names"),
    [
        ("from mirror_lib.a import Plan", [], []),
        (
            "from mirror_lib.a.plan import Plan",
            ["mirror_lib.b.use:1: from mirror_lib.a.plan import Plan"],
            ["mirror_lib.a.Plan"],
        ),
        ("", [], ["mirror_lib.a.Plan"]),
    ],
)
def test_given_an_import_of_another_package_then_it_goes_through_the_public_api_or_is_named(
    tree: Path, statement: str, past: list[str], unused_names: list[str]
) -> None:
    (tree / "mirror_lib" / "b" / "use.py").write_text(f"{statement}\n")

    assert list(map(str, reaching_past(tree))) == past
    assert unused(tree) == unused_names


def test_given_this_project_then_nobody_reaches_past_a_public_api_and_nothing_is_exported_in_vain() -> None:
    assert list(map(str, reaching_past(ROOT))) == []
    assert unused(ROOT) == []


def test_given_a_public_api_then_its_stub_is_up_to_date_and_every_name_is_there(subtests: pytest.Subtests) -> None:
    for package, api in public_apis(ROOT).items():
        with subtests.test(package):
            assert stub_of(ROOT, package).read_text(encoding="utf-8") == api.stub(), "run ./run public"
            # Python sets a module that is imported as an attribute of its package: the name would be that module then.
            folder = ROOT.joinpath(*package.split("."))
            modules = {path.stem for path in folder.glob("*.py")} | {
                path.name for path in folder.iterdir() if path.is_dir()
            }
            assert not modules & api.exports.keys()
            imported = importlib.import_module(package)
            for name, module in api.exports.items():
                assert getattr(imported, name) is getattr(importlib.import_module(f"{package}.{module}"), name), name
