"""An archive of Spark's classes (JEP 350), with which a driver's JVM starts in two thirds of its time.

It is code: a JVM runs what is in it. So only an archive is used that no other user could have written. A JVM ignores
one of another Java or Spark, and loads the classes from the jars.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from mirror_lib.errors import ConfigurationError
from mirror_lib.private_files import draft_of, others_may_replace

_log = logging.getLogger(__name__)
#: Environment variable with the path of the archive.
CLASS_ARCHIVE_VARIABLE = "MIRROR_SPARK_CLASS_ARCHIVE"
#: Otherwise a JVM prints why it does not use an archive, and some print it to stdout.
_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_SECONDS = 300


def class_archive_options(environment: Mapping[str, str]) -> str:
    """Return the JVM options that read the archive; empty if the environment names none that may be used."""
    path = environment.get(CLASS_ARCHIVE_VARIABLE)
    if not path:
        return ""
    why_not = _why_not(Path(path))
    if why_not is not None:
        _log.warning("%s=%s is ignored: %s.", CLASS_ARCHIVE_VARIABLE, path, why_not)
        return ""
    # Without its links, which are not followed again.
    return f"-XX:SharedArchiveFile={Path(path).resolve()} {_QUIETLY}"


def _why_not(path: Path) -> str | None:
    if not path.is_absolute() or any(letter.isspace() for letter in str(path)):
        return "the path must be absolute and without spaces"
    try:
        path = path.resolve(strict=True)
        is_file, shared = path.is_file(), others_may_replace(path)
    except OSError as error:
        return f"it cannot be read ({error.strerror}); `mirror spark class-archive` writes it"
    if any(letter.isspace() for letter in str(path)):
        return "it is a link to a path with spaces"
    if not is_file:
        return "it is not a file"
    if shared is not None:
        what = "it" if shared == path else f"its folder {shared}"
        return f"other users may write {what}; file and folders must belong to root or to this user"
    return None


def write_class_archive(path: Path, *, submit: Path, program: Path, settings: Mapping[str, str]) -> None:
    """Write the archive for a Spark and the Java of this environment; this takes about half a minute.

    Args:
        submit: `spark-submit`.
        program: what it runs; the archive gets the classes that are loaded at its end.
        settings: of Spark, so that no other user reaches the ports of this JVM, whose classes become the archive.

    Raises:
        ConfigurationError: the file cannot be written, or Spark does not start.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, submit, program, settings)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"the class archive {path} was not written: {error}.") from error


def _write(path: Path, submit: Path, program: Path, settings: Mapping[str, str]) -> None:
    # The JVM refuses to overwrite a file, and a driver may be reading the present one.
    with draft_of(path, 0o644) as draft:
        options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={draft} {_QUIETLY}"
        done = subprocess.run(
            [
                submit,
                "--master",
                "local[1]",
                *chain.from_iterable(("--conf", f"{k}={v}") for k, v in settings.items()),
                program,
            ],
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
