"""The results as a table mechanism x task, and below it all failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tools.security.results import TASKS, WayResult


def print_report(console: Console, results: Sequence[WayResult]) -> None:
    """The table and the failures."""
    table = Table(title="The whole flow with every authentication", title_justify="left")
    table.add_column("way", no_wrap=True)
    for task in TASKS:
        table.add_column(task)
    table.add_column("seconds", justify="right")
    for result in results:
        cells = {each.task: each.cell for each in result.tasks}
        table.add_row(result.way, *(cells.get(task, "-") for task in TASKS), f"{result.seconds:.0f}")
    console.print(table)
    for line in failures(results):
        console.print(Text(line), soft_wrap=True)


def failures(results: Sequence[WayResult]) -> Iterator[str]:
    """Yield a line for each."""
    for result in results:
        for each in result.tasks:
            if each.failure is not None:
                yield f"FAILED {result.way}, {each.task}: {each.failure}"
