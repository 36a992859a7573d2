"""`./run bench tables`: write the tables of measurements in the guides from `tools/bench/results/*.json`.

A line `<!-- measured: FILE TABLE -->` in a guide precedes each such table. What follows it up to the next empty line is
replaced.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results")
GUIDES = tuple(
    _PROJECT / path for path in ("docs/performance.md", "docs/airflow.md", "docs/engineering/performance-notes.md")
)
_SHOWN = re.compile(r"^<!-- measured: (?P<file>\S+) (?P<table>\S+) -->\n(?P<text>(?:\|.*\n)*)", re.MULTILINE)
_BRACKETS = re.compile(r"\*\*| \([^)]*\)")


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """A table as the guides show it. The first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = (self.columns, ("---",) * len(self.columns), *self.rows)
        return "".join("|" + "|".join(_cell(text) for text in line) + "|\n" for line in lines)

    def cells(self) -> Iterator[tuple[str, str, str]]:
        """Row, column and text of each cell."""
        for row in self.rows:
            for column, text in zip(self.columns, row, strict=True):
                yield row[0], column, text


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one command has measured."""

    command: str
    #: The day, and what else the machine did.
    measured: str
    tables: Mapping[str, MeasuredTable]


def load_results(folder: Path = RESULTS) -> dict[str, Measurement]:
    """Return all measurements by the names of their files, without the suffix."""
    return {path.stem: _measurement(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))}


def _measurement(document: Mapping[str, Any]) -> Measurement:
    tables = {
        name: MeasuredTable(tuple(table["columns"]), tuple(map(tuple, table["rows"])))
        for name, table in document["tables"].items()
    }
    views = {name: _view(tables, view["of"], view["columns"]) for name, view in document.get("views", {}).items()}
    return Measurement(document["command"], document["measured"], {**tables, **views})


def _view(tables: Mapping[str, MeasuredTable], names: Sequence[str], columns: Sequence[str]) -> MeasuredTable:
    """Return some columns of tables with the same rows, as medians only: without what is in brackets."""
    found = {(row, column): text for name in names for row, column, text in tables[name].cells()}
    rows = (row[0] for row in tables[names[0]].rows)
    return MeasuredTable(
        tuple(columns), tuple(tuple(_BRACKETS.sub("", found[row, column]) for column in columns) for row in rows)
    )


def shown_tables(text: str) -> list[tuple[str, str]]:
    """Return file and table of each table that a guide shows."""
    return [(found["file"], found["table"]) for found in _SHOWN.finditer(text)]


def with_tables(text: str, results: Mapping[str, Measurement]) -> str:
    """Return a guide with the present tables."""

    def written(found: re.Match[str]) -> str:
        head = found[0].partition("\n")[0]
        return f"{head}\n{results[found['file']].tables[found['table']].markdown()}"

    return _SHOWN.sub(written, text)


def _cell(text: str) -> str:
    return "---" if text == "---" else f" {text} " if text else " "


def main(argv: Sequence[str] | None = None) -> int:
    """Write the guides; with `--check` only say which ones would change, with exit code 1."""
    parser = argparse.ArgumentParser(prog="bench tables", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="Change nothing; exit code 1 if a guide would change.")
    check = parser.parse_args(argv).check
    results = load_results()
    changed = []
    for guide in GUIDES:
        text = guide.read_text("utf-8")
        new = with_tables(text, results)
        if new != text:
            changed.append(guide)
            if not check:
                guide.write_text(new, "utf-8")
    for guide in changed:
        print(f"{guide.relative_to(_PROJECT)}: {'differs' if check else 'written'}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
