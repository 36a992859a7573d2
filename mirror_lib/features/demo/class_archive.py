"""Archives of loaded classes (JEP 350), with which a JVM starts in about half the processor time.

The JVM ignores an archive that does not fit its version or its class path, and loads the classes from the jars.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from mirror_lib.features.demo.state import exclusive
from mirror_lib.private_files import draft_of
from mirror_lib.spark.java import find_java


def archive_path(folder: Path, name: str) -> Path:
    """Return the path of an archive for the Java in use, whether it exists or not."""
    java = find_java().resolve()
    build = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return folder / f"{name}-{build}.jsa"


def reading_options(archive: Path) -> tuple[str, ...]:
    """Return the JVM options that read an archive; none if it does not exist."""
    return (f"-XX:SharedArchiveFile={archive}",) if archive.is_file() else ()


def make_archive(archive: Path, run: Callable[[tuple[str, ...]], None]) -> bool:
    """Make an archive unless it exists; return whether it was made.

    Args:
        archive: where it is stored.
        run: runs a JVM with the given options to its orderly end; the archive holds the classes that it has loaded.
    """
    if archive.is_file():
        return False
    with exclusive(archive.with_suffix(".lock")):
        if archive.is_file():
            return False
        with draft_of(archive) as draft:
            run((f"-XX:ArchiveClassesAtExit={draft}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"))
    return True
