"""An archive of Spark's classes (JEP 350), with which a driver's JVM starts in two thirds of its time.

It is code: a JVM runs what is in it. So only an archive is used that no other user could have written. A JVM ignores
one of another Java or Spark, and loads the classes from the jars.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from mirror_lib.private_files import others_may_replace

_log = logging.getLogger(__name__)
#: Environment variable with the path of the archive.
CLASS_ARCHIVE_VARIABLE = "MIRROR_SPARK_CLASS_ARCHIVE"
#: Otherwise a JVM prints why it does not use an archive, and some print it to stdout.
QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"


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
    return f"-XX:SharedArchiveFile={Path(path).resolve()} {QUIETLY}"


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
