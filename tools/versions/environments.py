"""Environments of Python with this project and chosen versions of a package, in the state folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.config.local_state import project_root, state_dir
from mirror_lib.errors import MirrorError

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==")


class EnvironmentNotMadeError(MirrorError):
    """An environment could not be made: a Python or a package is not to be had."""

    reason = "environment"


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python with packages."""

    folder: Path

    def program(self, name: str) -> Path:
        """Return the path of a program of the environment."""
        return self.folder / "bin" / name


def environment(name: str, python: str, packages: Sequence[str], *, free: Collection[str]) -> Environment:
    """Make or complete an environment with this project and more packages; the lock decides all versions but some.

    Args:
        name: of its folder.
        python: its version, such as 3.11; one that is installed on this machine.
        packages: requirements, such as `pyspark==3.5.9`.
        free: names of packages for which the lock does not count.

    Raises:
        EnvironmentNotMadeError: this Python is not installed, or the packages cannot be had together.
    """
    made = _make(name, python)
    constraints = made.folder.with_suffix(".constraints")
    constraints.write_text("".join(f"{line}\n" for line in _locked(free)), encoding="utf-8")
    install = ["pip", "install", "--quiet", "--python", str(made.program("python")), "--constraint", str(constraints)]
    _uv([*install, "--editable", f"{project_root()}[transforms]", *packages])
    return made


def environment_of(name: str, python: str, packages: Sequence[str], *, until: str) -> Environment:
    """Make or complete an environment with packages of up to a day.

    Args:
        name: of its folder.
        packages: requirements, as `uv pip install` takes them.
        until: day up to which packages were released that are taken, such as `2025-02-20`: those of that time fit.

    Raises:
        EnvironmentNotMadeError: as `environment`.
    """
    made = _make(name, python)
    install = ["pip", "install", "--quiet", "--python", str(made.program("python")), "--exclude-newer", until]
    _uv([*install, *packages])
    return made


def _make(name: str, python: str) -> Environment:
    made = Environment(state_dir() / "versions" / name)
    made.folder.parent.mkdir(parents=True, exist_ok=True)
    if not made.program("python").exists():
        _uv(["venv", "--quiet", "--python", _python(python), str(made.folder)])
    return made


def _python(version: str) -> str:
    """Return a Python of pyenv by its path, else the version, which uv looks for."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(versions.glob(f"{version}.*/bin/python3"))
    return str(found[-1]) if found else version


def _locked(free: Collection[str]) -> list[str]:
    lines = (project_root() / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = [(match[1].lower(), line.rstrip(" \\")) for line in lines if (match := _PINNED.match(line))]
    return [line for name, line in pinned if name not in free]


def _uv(arguments: Sequence[str]) -> None:
    uv = Path(sys.executable).with_name("uv")
    # A Python that is missing here is an answer; uv's downloads of one are not wanted.
    variables = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    done = subprocess.run([uv, *arguments], env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentNotMadeError(
            f"uv {arguments[0]} failed: {done.stderr.strip()[-800:]}", action="See the message."
        )
