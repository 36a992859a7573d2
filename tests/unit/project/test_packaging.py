"""What an installation rests on: the lock, the two Spark packages, and what a wheel holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from mirror_lib.features.pack.executor_archive import installed_distributions

PROJECT = Path(__file__).resolve().parents[3]
LOCK = PROJECT / "requirements.lock"
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.+?))? \\")


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())


def _lock_lines() -> list[str]:
    return LOCK.read_text().splitlines()


def _pins() -> dict[str, list[str]]:
    """Versions by name; a package may have several, for different Pythons."""
    pins: dict[str, list[str]] = {}
    for line in _lock_lines():
        found = _PINNED.fullmatch(line)
        if found:
            pins.setdefault(found["name"], []).append(found["version"])
    return pins


def _direct_requirements() -> list[Requirement]:
    pyproject = _pyproject()
    project = pyproject["project"]
    listed = [
        *project["dependencies"],
        # What is compiled against the system's Kerberos would keep others from installing the lock.
        *(each for name, extra in project["optional-dependencies"].items() if name != "kerberos" for each in extra),
        *(each for group in pyproject["dependency-groups"].values() for each in group),
    ]
    requirements = [Requirement(text) for text in listed]
    return [each for each in requirements if each.name != project["name"]]


def test_the_lock_pins_the_same_version_of_both_spark_packages() -> None:
    assert _pins()["pyspark"] == _pins()["pyspark-client"]


def test_the_lock_satisfies_pyproject() -> None:
    pins = _pins()
    for requirement in _direct_requirements():
        pinned = pins.get(canonicalize_name(requirement.name), [])

        assert pinned, f"{requirement.name} is not in requirements.lock: ./run lock"
        for each in pinned:
            assert requirement.specifier.contains(Version(each), prereleases=True), f"{requirement}: {each}"


def test_a_plain_installation_is_small_and_has_neither_spark_nor_airflow() -> None:
    needed = [Requirement(text).name for text in _pyproject()["project"]["dependencies"]]

    found = {canonicalize_name(each.name) for each in installed_distributions(needed)}

    assert len(found) < 35, sorted(found)
    assert found.isdisjoint({"apache-airflow", "pyspark", "pandas", "pyarrow", "uvloop", "httpx", "sqlglot"})


def test_the_build_backend_is_locked_since_setup_builds_without_isolation() -> None:
    names = {Requirement(text).name for text in _pyproject()["build-system"]["requires"]}

    assert names <= _pins().keys()


def test_the_wheel_holds_both_packages_and_the_ledgers_migrations(tmp_path: Path) -> None:
    """Built with the backend itself, in process: alembic finds migrations through the installed package."""
    from zipfile import ZipFile

    from hatchling.builders.wheel import WheelBuilder

    if not (PROJECT / "README.md").is_file():
        pytest.fail("pyproject.toml names README.md, which does not exist")
    (wheel,) = WheelBuilder(str(PROJECT)).build(directory=str(tmp_path), versions=["standard"])

    names = set(ZipFile(wheel).namelist())
    assert {"mirror_lib/__init__.py", "mirror_lib/cli/main.py", "spark_jobs/replicate.py"} <= names
    migrations = PROJECT / "mirror_lib" / "ledger" / "migrations"
    on_disk = {
        path.relative_to(PROJECT).as_posix() for path in migrations.rglob("*") if path.suffix in {".py", ".mako"}
    }
    assert on_disk
    assert on_disk <= names
    assert not any(name.startswith(("tests/", "bench/", "dags/")) for name in names)
