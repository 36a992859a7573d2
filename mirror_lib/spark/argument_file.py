"""A job's command line in a file, if the operating system would refuse it (`Argument list too long`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mirror_lib.private_files import write_private

_OPTION: Final = "--arguments="
_FILE: Final = "arguments.json"
#: Linux accepts 128 KiB for one argument and 2 MiB for all, environment included; `spark-submit` passes them on
#: together with Spark's settings.
_LONGEST: Final = 32_000


def shorten(arguments: Sequence[str], folder: Path) -> list[str]:
    """The same command line for a job on this machine; a long one becomes one argument that names a file.

    Args:
        arguments: arguments of a job that starts with `spark_jobs.entry`.
        folder: folder of the file. It must exist until the job has ended.
    """
    if sum(map(len, arguments)) <= _LONGEST:
        return list(arguments)
    path = folder / _FILE
    write_private(path, json.dumps(list(arguments)))
    return [f"{_OPTION}{path}"]


def expand(argv: Sequence[str]) -> list[str]:
    """The inverse of `shorten`."""
    if len(argv) != 1 or not argv[0].startswith(_OPTION):
        return list(argv)
    found: list[str] = json.loads(Path(argv[0].removeprefix(_OPTION)).read_text(encoding="ascii"))
    return found
