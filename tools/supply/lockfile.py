"""Parse `requirements.lock`, as written by uv: every package with its version, its hashes and its dependents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements.lock"

_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)\s*(?:;\s*([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"^ +--hash=sha256:([0-9a-f]{64})\s*\\?$")
_VIA = re.compile(r"^ +# +(?:via +)?(\S.*)$")
_ROOT = "batch-mirror (pyproject.toml)"


class LockError(ValueError):
    """The lock does not have uv's format, so nothing may be concluded from it."""


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One package in one version."""

    name: str
    version: str
    #: Where it is installed, None for everywhere.
    marker: str | None
    #: SHA-256 of every file that may be installed.
    hashes: tuple[str, ...]
    #: The packages that depend on it, or `batch-mirror (pyproject.toml)`.
    via: tuple[str, ...]
    #: True if the program needs it, with any of its extras; False for development.
    runtime: bool = True


def read_lock(text: str) -> tuple[LockedPackage, ...]:
    """Return all packages, in the order of the file.

    Raises:
        LockError: a line is malformed, or a package has no hash.
    """
    found: list[LockedPackage] = []
    name, version, marker = "", "", None
    hashes: list[str] = []
    via: list[str] = []

    def close() -> None:
        if name:
            if not hashes:
                raise LockError(f"{name} has no hash")
            found.append(LockedPackage(name, version, marker, tuple(hashes), tuple(via)))
        hashes.clear()
        via.clear()

    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if package := _PACKAGE.match(line):
            close()
            name, version, marker = package[1], package[2], package[3]
        elif digest := _HASH.match(line):
            hashes.append(digest[1])
        elif wanted := _VIA.match(line):
            via.append(wanted[1])
        elif line.strip() != "# via":
            raise LockError(f"line {number} cannot be understood: {line.strip()[:80]}")
    close()
    return _with_runtime(found)


def _with_runtime(packages: list[LockedPackage]) -> tuple[LockedPackage, ...]:
    """Return the packages with `runtime` set for the program's dependencies, direct or not."""
    needed = {_ROOT}
    while True:
        more = {package.name for package in packages if needed.intersection(package.via)} - needed
        if not more:
            break
        needed |= more
    return tuple(
        LockedPackage(each.name, each.version, each.marker, each.hashes, each.via, each.name in needed)
        for each in packages
    )
