"""Public APIs: what files of users and features of other distributions import."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.public_api.packages import public_apis, stub_of, unused

ROOT = Path(__file__).resolve().parents[3]


def test_given_an_export_that_no_other_package_imports_then_it_is_named(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / "mirror_lib" / folder).mkdir(parents=True)
    (tmp_path / "mirror_lib" / "a" / "__init__.py").write_text(
        'import lazy_loader\n\nlazy_loader.attach(__name__, submod_attrs={"plan": ["Plan"]})\n'
    )
    use = tmp_path / "mirror_lib" / "b" / "use.py"

    for statement, names in (("from mirror_lib.a import Plan", []), ("", ["mirror_lib.a.Plan"])):
        use.write_text(f"{statement}\n")
        assert unused(tmp_path) == names


def test_given_this_project_then_nothing_is_exported_in_vain() -> None:
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
