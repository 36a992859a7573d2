"""The findings as a table, and each failure with what is needed to reproduce it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tools.fuzz.model import Failure, TargetResult


def print_report(console: Console, results: Sequence[TargetResult], files: dict[int, Path]) -> None:
    """The table and the failures."""
    table = Table(title="Untrusted input", title_justify="left")
    for column in ("target", "what"):
        table.add_column(column)
    for column in ("cases", "outcomes", "most memory", "seconds", "failures"):
        table.add_column(column, justify="right")
    for result in results:
        table.add_row(
            result.name,
            result.what,
            f"{result.cases:,}",
            str(len(result.outcomes)),
            f"{result.peak_bytes / (1 << 20):.0f} MiB",
            f"{result.seconds:.0f}",
            str(len(result.failures)),
            style="bold red" if result.failures else None,
        )
    console.print(table)
    for line in sentences(results, files):
        console.print(Text(line), soft_wrap=True)


def sentences(results: Sequence[TargetResult], files: dict[int, Path]) -> Iterator[str]:
    """Yield a total, then every failure."""
    cases, failures = sum(result.cases for result in results), [each for result in results for each in result.failures]
    yield f"{cases:,} cases, {len(failures)} failures"
    for failure in failures:
        yield f"FAILED {failure.target} case {failure.case}: {failure.kind}: {failure.detail}"
        yield f"  again: ./run fuzz --targets {failure.target} --seed {failure.seed} --only {failure.case}"
        if id(failure) in files:
            yield f"  input: {files[id(failure)]}"


def keep(results: Sequence[TargetResult], folder: Path) -> dict[int, Path]:
    """Store each failure's bytes in a file of hexadecimal digits; return the files by `id` of the failure."""
    failures: list[Failure] = [each for result in results for each in result.failures]
    if failures:
        folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for failure in failures:
        path = folder / f"{failure.target}-{failure.seed}-{failure.case}.hex"
        path.write_text(failure.data.hex() + "\n", encoding="ascii")
        files[id(failure)] = path
    return files
