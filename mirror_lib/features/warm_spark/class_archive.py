"""Writing an archive of Spark's classes (JEP 350), with which a driver's JVM starts in two thirds of its time.

`mirror_lib.spark` reads it, for every driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from mirror_lib.errors import ConfigurationError
from mirror_lib.private_files import draft_of
from mirror_lib.spark.class_archive import QUIETLY

_SECONDS = 300


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
        options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={draft} {QUIETLY}"
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
