"""What the commands that import have in common: where a file comes from, and where the new one goes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mirror_lib.cli import write_file
from mirror_lib.config import loader as load
from mirror_lib.config.model import Provenance
from mirror_lib.config.secrets.masking import printable_value
from mirror_lib.errors import ConfigurationError
from mirror_lib.outside_limits import FILE_BYTES
from mirror_lib.printable import LINES, printable

if TYPE_CHECKING:
    from mirror_lib.config.model import Problem
    from mirror_lib.features.importers.written_file import Listed, Placed

OutputOption = Annotated[
    Path | None,
    typer.Option("--output", help="Output file, readable only by its owner; default stdout.", metavar="FILE"),
]


def read_standard_input() -> bytes:
    """Return all of standard input.

    Raises:
        ConfigurationError: it is larger than a file may be.
    """
    found = sys.stdin.buffer.read(FILE_BYTES + 1)
    if len(found) > FILE_BYTES:
        raise ConfigurationError(
            f"standard input has more than {FILE_BYTES // 1024 // 1024} MiB.", action="Pass the file that is meant."
        )
    return found


def write_or_print(text: str, path: Path | None, *, force: bool, as_json: bool) -> None:
    """Write an ASCII file to a path or to stdout; with JSON output, stdout holds the document instead.

    Raises:
        ConfigurationError: the file exists already, or it cannot be written.
    """
    if path is not None:
        write_file(path, text.encode("ascii"), force=force)
    elif not as_json:
        typer.echo(text, nl=False)


def problems_of(text: str) -> tuple[Problem, ...]:
    """Return the result of `mirror config check` for a file with this text."""
    with TemporaryDirectory(prefix="mirror-import-") as folder:
        file = Path(folder, "mirror.properties")
        file.touch(mode=0o600)
        file.write_text(text, encoding="ascii")
        return load.check(file)


def mask_setting(name: str, value: str, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a setting of the old file for the JSON document, without secrets."""
    return {"name": name, "value": printable_value(name, Provenance(value=value, key=name)), **more}


def imported_settings(placed: Sequence[Placed], listed: Sequence[Listed]) -> dict[str, Any]:
    """Return where every setting of the old files went, for the JSON document."""
    return {
        "placed": [mask_setting(each.name, each.value, {"from": each.origin, "key": each.key}) for each in placed],
        "listed": [
            mask_setting(each.name, each.value, {"from": each.origin, "reason": each.reason}) for each in listed
        ],
    }


def say(lines: Sequence[str]) -> None:
    """Print lines to stderr, since stdout has the file."""
    for line in lines:
        sys.stderr.write(f"{printable(line, LINES)}\n")
