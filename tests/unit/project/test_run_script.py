"""The script `run`, with tools that only say that they were called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS = 30.0


def clone(folder: Path, **tools: str) -> Path:
    """A clone that is set up; each tool is a shell script in its environment."""
    shutil.copy(_PROJECT / "run", folder)
    (folder / "tests" / "unit").mkdir(parents=True)
    (folder / "tests" / "support").mkdir()
    shutil.copy(_PROJECT / "tests" / "support" / "system_packages.sh", folder / "tests" / "support")
    (folder / "tests" / "unit" / "test_something.py").touch()
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, script in {"mirror": "", "ruff": "", "mypy": "", "lint_imports": "", "python": "", **tools}.items():
        program = programs / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    for name in ("requirements.lock", "pyproject.toml", ".venv/pyvenv.cfg"):
        (folder / name).touch()
    checksum = subprocess.run(["cksum"], input=b"", capture_output=True, check=True).stdout.decode()
    (folder / ".venv" / ".setup-stamp").write_text(f"{folder.resolve()}\n{checksum}")
    return folder


def test_given_a_check_that_fails_beside_tests_that_pass_then_the_command_fails_and_shows_what_it_said(
    tmp_path: Path,
) -> None:
    folder = clone(tmp_path, mypy="echo that is no type; exit 1")

    done = subprocess.run(["./run", "check"], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)

    assert done.returncode == 1
    assert "that is no type" in done.stderr
    assert "failed: static_checks" in done.stderr


@pytest.mark.parametrize("stamp", ["another clone's", "missing"])
def test_given_a_link_to_the_environment_of_another_clone_when_setting_up_then_that_is_refused_and_not_emptied(
    tmp_path: Path, stamp: str
) -> None:
    (tmp_path / "other").mkdir()
    environment = clone(tmp_path / "other") / ".venv"
    if stamp == "missing":
        (environment / ".setup-stamp").unlink()
    before = sorted(str(path) for path in environment.rglob("*"))
    (tmp_path / "linked").mkdir()
    folder = clone(tmp_path / "linked")
    shutil.rmtree(folder / ".venv")
    (folder / ".venv").symlink_to(environment)

    done = subprocess.run(["./run", "setup"], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)

    assert done.returncode == 2
    assert ".venv is a link to an environment that was not made for" in done.stderr
    assert sorted(str(path) for path in environment.rglob("*")) == before
