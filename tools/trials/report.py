"""The results as a table, and below it what differs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tools.trials.results import TrialResult


def print_report(console: Console, results: Sequence[TrialResult]) -> None:
    """Print the table and the sentences."""
    table = Table(title="Audits of clean and damaged copies", title_justify="left")
    for name in ("trial", "copied by", "planted or expected", "found by the audit", "verdict"):
        table.add_column(name)
    for name in ("seconds", "of these audit"):
        table.add_column(name, justify="right")
    for each in results:
        table.add_row(
            each.name,
            each.by,
            "-" if each.expected is None else str(each.expected),
            "-" if each.found is None else str(each.found),
            Text(each.verdict, style="" if each.ok else "bold red"),
            f"{each.seconds:.1f}",
            f"{each.audit_seconds:.1f}",
        )
    console.print(table)
    for each in results:
        for text in filter(None, (*each.differences, each.failure)):
            console.print(Text(f"{each.verdict} {each.name}: {text}"), soft_wrap=True)
    right = sum(each.ok for each in results)
    console.print(f"{right} of {len(results)} audits found exactly what is expected.", highlight=False)
