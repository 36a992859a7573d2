"""An archive of Spark's classes (JEP 350), with which a driver's JVM starts in two thirds of its time.

It is code: a JVM runs what is in it. So only an archive is used that no other user could have written. A JVM ignores
one of another Java or Spark, and loads the classes from the jars.
"""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mirror_lib.errors import ConfigurationError
from mirror_lib.private_files import draft_of

_log = logging.getLogger(__name__)
#: Environment variable with the path of the archive.
CLASS_ARCHIVE_VARIABLE = "MIRROR_SPARK_CLASS_ARCHIVE"
#: Otherwise a JVM prints why it does not use an archive, and some print it to stdout.
_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_SECONDS = 300
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def class_archive_options(environment: Mapping[str, str]) -> str:
    """Return the JVM options that read the archive; empty if the environment names none that may be used."""
    path = environment.get(CLASS_ARCHIVE_VARIABLE)
    if not path:
        return ""
    why_not = _why_not(Path(path))
    if why_not is not None:
        _log.warning("%s=%s is ignored: %s.", CLASS_ARCHIVE_VARIABLE, path, why_not)
        return ""
    return f"-XX:SharedArchiveFile={path} {_QUIETLY}"


def _why_not(path: Path) -> str | None:
    if not path.is_absolute() or any(letter.isspace() for letter in str(path)):
        return "the path must be absolute and without spaces"
    try:
        found = path.stat()
    except OSError as error:
        return f"it cannot be read ({error.strerror}); `mirror spark class-archive` writes it"
    if not stat.S_ISREG(found.st_mode):
        return "it is not a file"
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS_WRITE:
        return "other users may write it; it must belong to root or to this user"
    return None


def write_class_archive(path: Path, *, submit: Path, program: Path) -> None:
    """Write the archive for a Spark and the Java of this environment; this takes about half a minute.

    Args:
        submit: `spark-submit`.
        program: what it runs; the archive gets the classes that are loaded at its end.

    Raises:
        ConfigurationError: the file cannot be written, or Spark does not start.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, submit, program)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"the class archive {path} was not written: {error}.") from error


def _write(path: Path, submit: Path, program: Path) -> None:
    # The JVM refuses to overwrite a file, and a driver may be reading the present one.
    with draft_of(path, 0o644) as draft:
        options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={draft} {_QUIETLY}"
        done = subprocess.run(
            [submit, "--master", "local[1]", program],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": options},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode or not draft.is_file():
            raise ConfigurationError(
                f"Spark's JVM did not write the class archive (exit code {done.returncode}): {done.stderr[-1000:]}",
                action="Check that Java is 17 or newer (`java -version`).",
            )
