"""Files that commands read and write: properties files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.errors import ConfigurationError
from mirror_lib.limited_files import read_limited
from mirror_lib.private_files import draft_of

ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


def read_bytes(path: Path) -> bytes:
    """Return the content of a file that is named on the command line.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return read_limited(path)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", action="Pass a regular file, or - for standard input."
        ) from error


def write_file(path: Path, data: bytes, *, force: bool) -> None:
    """Write a file that may hold passwords atomically, readable only by its owner.

    Raises:
        ConfigurationError: the file exists already, or it cannot be written.
    """
    if path.exists() and not force:
        raise ConfigurationError(f"{path} already exists.", action="Pass another file, or overwrite it with --force.")
    try:
        with draft_of(path, 0o600) as draft:
            draft.write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.", action="Pass another file.") from error
