"""Digests of the jars that `mirror dev fetch` downloads: brokers and MirrorMaker 2, for tests and the demo only.

Ivy checks each download against the checksum in the same repository, which proves that it is complete. `jars.sha256`
proves that it is the same as when this project first used it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

KNOWN_JARS = Path(__file__).with_name("jars.sha256")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class CheckedJars:
    """The result of checking a folder of jars."""

    checked: int
    #: Jars that differ; each a sentence.
    problems: tuple[str, ...]


def read_known(text: str) -> Mapping[str, str]:
    """Return file name -> SHA-256, from lines as `sha256sum` writes them."""
    lines = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name: digest for digest, name in lines}


def known_jars() -> Mapping[str, str]:
    """Return the digests that this project knows."""
    return read_known(KNOWN_JARS.read_text(encoding="utf-8"))


def check_jars(known: Mapping[str, str], folder: Path, *, refuse_unknown: bool = True) -> CheckedJars:
    """Compare the jars in a folder and its subfolders.

    Args:
        known: file name -> SHA-256.
        refuse_unknown: True if an unknown file is a problem.
    """
    checked, problems = 0, []
    for path in _jars(folder):
        checked += 1
        wanted = known.get(path.name)
        if wanted is None:
            if refuse_unknown:
                problems.append(f"{path.name} has no digest in {KNOWN_JARS.name}")
        elif digest_of(path) != wanted:
            problems.append(f"{path} is not the file that it was: fetch it again, and find out who changed it")
    return CheckedJars(checked, tuple(problems))


def digest_of(path: Path) -> str:
    """Return SHA-256 in hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _jars(folder: Path) -> Iterator[Path]:
    return iter(sorted([*folder.glob("*.jar"), *folder.glob("*/*.jar")]))
