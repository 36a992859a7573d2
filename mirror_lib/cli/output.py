"""Output of commands: tables and values for the console, or one JSON document for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, Protocol

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from mirror_lib.errors import MirrorError
from mirror_lib.former_names import with_former_members
from mirror_lib.printable import LINES, printable

#: The option that every command has.
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


_PIPE_WIDTH = 240

#: The one label on the console that is not its name: all errors have `what` in JSON.
_LABELS: Mapping[str, str] = {"what": "details"}


class Progress(Protocol):
    """A long operation."""

    def advance(self, amount: float = 1) -> None:
        """Add to the completed amount."""

    def update(self, completed: float, total: float | None = None, description: str | None = None) -> None:
        """Set the completed amount; the total and the text may change."""


class Output(Protocol):
    """The destination of a command's results.

    `name` is the member of the JSON document that holds a result; the console shows it as a heading.
    """

    #: Exit code of the process if the command ends normally: 0 done, 1 work failed, 2 usage, 3 an operator is needed.
    exit_code: int

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Show rows with named columns; in JSON a list of objects."""

    def values(self, name: str, values: Mapping[str, Any]) -> None:
        """Show names and values; in JSON an object."""

    def note(self, text: str) -> None:
        """Show a sentence on the console; not in the JSON document."""

    def document(self, data: Mapping[str, Any]) -> None:
        """Add members to the JSON document; not shown on the console."""

    def error(self, error: MirrorError) -> None:
        """Report an error; there may be several."""

    def progress(self, description: str, total: float | None = None) -> AbstractContextManager[Progress]:
        """Show progress of a long operation; not in the JSON document."""

    def finish(self) -> None:
        """Write the remaining output."""


class ConsoleOutput:
    """Results on stdout, errors and progress on stderr."""

    def __init__(self, out: Console | None = None, err: Console | None = None) -> None:
        self.exit_code = 0
        # Rich assumes 80 columns without a terminal, which would break words that other programs search for.
        self._out = out or Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
        self._err = err or Console(stderr=True, highlight=False)

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for index, column in enumerate(columns):
            numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
            table.add_column(_label(column), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(_cell(value))) for value in row))
        self._out.print(Text(_column_title(name), style="bold italic"))
        self._out.print(table)

    def values(self, name: str, values: Mapping[str, Any]) -> None:
        if not values:
            return
        grid = Table.grid(padding=(0, 2))
        for key, value in values.items():
            grid.add_row(Text(printable(_label(key)), style="bold"), _visible(_cell(value)))
        self._out.print(Text(_column_title(name), style="bold italic"))
        self._out.print(grid)

    def note(self, text: str) -> None:
        self._out.print(_visible(text), soft_wrap=True)

    def document(self, data: Mapping[str, Any]) -> None:
        """Do nothing: only for programs."""

    def error(self, error: MirrorError) -> None:
        place = f"{error.where}: " if str(error.where) else ""
        self._err.print(
            Text.assemble(("error: ", "bold red"), Text(printable(place + error.what, LINES))), soft_wrap=True
        )
        if error.action:
            self._err.print(_visible(error.action), soft_wrap=True)

    @contextmanager
    def progress(self, description: str, total: float | None = None) -> Iterator[Progress]:
        bar = RichProgress(
            # Names may look like Rich's markup.
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._err,
            transient=True,
        )
        with bar:
            yield _Bar(bar, description, total)

    def finish(self) -> None:
        """Do nothing: everything is printed already."""


def _visible(text: str) -> Text:
    """Return text with control characters escaped: names from a cluster must not control the terminal."""
    return Text(printable(text, "\n"))


class _Bar:
    def __init__(self, bar: RichProgress, description: str, total: float | None) -> None:
        self._bar = bar
        self._task = bar.add_task(printable(description), total=total)

    def advance(self, amount: float = 1) -> None:
        self._bar.advance(self._task, amount)

    def update(self, completed: float, total: float | None = None, description: str | None = None) -> None:
        shown = None if description is None else printable(description)
        self._bar.update(self._task, completed=completed, total=total, description=shown)


class JsonOutput:
    """One JSON document on stdout at the end; it always has `exit_code`, and `error` after an error.

    Renamed members are written under both names.
    """

    def __init__(self) -> None:
        self.exit_code = 0
        self._document: dict[str, Any] = {}

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self._document[name] = json_rows(columns, rows)

    def values(self, name: str, values: Mapping[str, Any]) -> None:
        self._document[name] = dict(values)

    def note(self, text: str) -> None:
        """Do nothing: only for the console."""

    def document(self, data: Mapping[str, Any]) -> None:
        self._document.update(data)

    def error(self, error: MirrorError) -> None:
        if "error" in self._document:
            self._document.setdefault("further_errors", []).append(error.attributes())
        self._document.setdefault("error", error.attributes())

    @contextmanager
    def progress(self, description: str, total: float | None = None) -> Iterator[Progress]:  # noqa: ARG002
        yield _Silent()

    def finish(self) -> None:
        document = {**with_former_members(self._document), "exit_code": self.exit_code}
        sys.stdout.write(json.dumps(document, indent=2, default=_plain) + "\n")


class _Silent:
    def advance(self, amount: float = 1) -> None:
        pass

    def update(self, completed: float, total: float | None = None, description: str | None = None) -> None:
        pass


@contextmanager
def report_errors(as_json: JsonOption = False) -> Iterator[Output]:
    """The frame around every command: provides its output, reports its errors, and exits with its exit code.

    Raises:
        typer.Exit: always.
    """
    output: Output = JsonOutput() if as_json else ConsoleOutput()
    try:
        yield output
    except MirrorError as error:
        output.error(error)
        output.exit_code = error.exit_code
    output.finish()
    raise typer.Exit(output.exit_code)


def json_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table as objects: the column `lag (records)` is the member `lag_records`."""
    keys = [re.sub(r"[()]", "", column).replace(" ", "_") for column in columns]
    return [dict(zip(keys, row, strict=True)) for row in rows]


def _column_title(name: str) -> str:
    return _label(name.replace("_", " "))


def _label(name: str) -> str:
    return _LABELS.get(name, name)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_cell(member) for member in value)
    return str(value)


def _plain(value: Any) -> Any:
    """Return JSON for types that the standard encoder does not support."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)
