"""What an installation rests on: the lock, the two Spark packages, and what a wheel holds."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

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


def test_pyspark_and_pyspark_client_have_the_same_version() -> None:
    """They unpack into the same folder, so that different versions would overwrite each other's files."""
    assert version("pyspark") == version("pyspark-client")


def test_the_lock_pins_the_same_version_of_both_spark_packages() -> None:
    assert _pins()["pyspark"] == _pins()["pyspark-client"]


def test_the_lock_names_packages_only() -> None:
    lines = [line for line in _lock_lines() if not line.lstrip().startswith("--hash=sha256:")]

    for what, forbidden in (
        ("address", r"://"),
        ("direct reference", r" @ "),
        ("option of pip, such as an index or an editable install", r"^\s*-"),
        ("path", r"(^|[\s=\"'])\.{0,2}/"),
        ("file", r"\bfile:"),
        ("archive", r"\.(whl|tar\.gz|zip)\b"),
    ):
        assert [line for line in lines if re.search(forbidden, line)] == [], what


def test_every_locked_package_has_hashes() -> None:
    lines = [line for line in _lock_lines() if not line.lstrip().startswith("#")]
    entries = [number for number, line in enumerate(lines) if not line.startswith(" ")]

    assert entries
    for number in entries:
        assert _PINNED.fullmatch(lines[number]), lines[number]
        assert re.match(r"    --hash=sha256:[0-9a-f]{64}( \\)?$", lines[number + 1]), lines[number]


def test_the_lock_satisfies_pyproject() -> None:
    pins = _pins()
    for requirement in _direct_requirements():
        pinned = pins.get(canonicalize_name(requirement.name), [])

        assert pinned, f"{requirement.name} is not in requirements.lock: ./run lock"
        for each in pinned:
            assert requirement.specifier.contains(Version(each), prereleases=True), f"{requirement}: {each}"


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


def test_entry_scripts_are_executable_posix_shell() -> None:
    for script in ("run", ".ci/run"):
        assert (PROJECT / script).stat().st_mode & 0o111, script
        assert (PROJECT / script).read_text().startswith("#!/bin/sh\n"), script


def test_the_license_file_is_the_declared_license() -> None:
    assert _pyproject()["project"]["license"] == "Apache-2.0"
    assert "Apache License" in (PROJECT / "LICENSE").read_text()[:200]
