"""The results as a table for the console and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tools.faults.records.sequences import Findings
from tools.faults.results import RECOVERY_GOAL_SECONDS, Complete, KindLine, Results

_NONE = "-"
_COUNTS = ("tried", "in mid-copy")
_FINDINGS = ("missing", "duplicated", "out of order", "altered")


def print_report(console: Console, results: Results) -> None:
    """Print the table, and a summary."""
    console.print(fault_table(results))
    for line in conclusions(results):
        console.print(line)


def fault_table(results: Results) -> Table:
    """Return one line for each kind of fault, and their sum."""
    table = Table(title="Faults, and the findings on the target after each", title_justify="left")
    table.add_column("fault", no_wrap=True)
    for heading in (
        "tried",
        "in mid-copy",
        "missing",
        "duplicated",
        "out of order",
        "altered",
        "recovered",
        "again (s)",
    ):
        table.add_column(heading, justify="right")
    for line in results.lines:
        table.add_row(line.kind, *_cells(line))
    table.add_section()
    table.add_row(
        "all",
        str(len(results.strikes)),
        str(sum(line.mid_copy for line in results.lines)),
        *_numbers(results.findings),
        f"{sum(line.recovered for line in results.lines):,}",
        _seconds(results.recovery_seconds),
    )
    if results.complete is not None:
        table.add_row("all, in the end", "", "", *_numbers(results.complete.findings), "", "")
    return table


def conclusions(results: Results) -> list[Text]:
    """Return sentences below the table."""
    lines = []
    if results.stopped is not None:
        lines.append(Text(f"The campaign ended early: {results.stopped}", style="bold red"))
    complete = results.complete
    if complete is None:
        lines.append(Text("Not all records were read from both clusters.", style="yellow"))
    else:
        lines += _complete_lines(complete)
    if results.recovery_seconds is not None:
        reached = results.recovery_seconds <= RECOVERY_GOAL_SECONDS
        lines.append(
            Text(
                f"Copied again at most {results.recovery_seconds:.1f} s after a broker's return "
                f"(goal: {RECOVERY_GOAL_SECONDS:.0f} s, {'reached' if reached else 'not reached'}).",
                style="" if reached else "yellow",
            )
        )
    kinds = len(results.lines)
    lines.append(Text(f"{len(results.strikes)} faults of {kinds} kinds, seed {results.seed}.", style="dim"))
    return lines


def _complete_lines(complete: Complete) -> list[Text]:
    lines = [Text(fault, style="bold red") for fault in complete.input_faults]
    if complete.input_faults:
        lines.append(
            Text("The source does not contain all written records: no conclusion about the copy.", style="bold red")
        )
    lines.append(
        Text(
            f"Read at the end: {complete.source_records:,} records of the source, "
            f"{complete.target_records:,} of the target.",
            style="dim",
        )
    )
    return lines


def _cells(line: KindLine) -> list[str]:
    return [
        str(line.tried),
        str(line.mid_copy),
        *_numbers(line.findings),
        f"{line.recovered:,}",
        _seconds(line.recovery_seconds),
    ]


def _numbers(findings: Findings) -> list[str]:
    numbers = (findings.missing, findings.duplicated, findings.out_of_order, findings.altered)
    return [f"[bold red]{number:,}[/]" if number else "0" for number in numbers]


def _seconds(value: float | None) -> str:
    return _NONE if value is None else f"{value:.1f}"


def to_json(results: Results, setup: Mapping[str, Any]) -> dict[str, Any]:
    """Return all results, fault by fault, and the table."""
    return {
        "seed": results.seed,
        "setup": dict(setup),
        "clean": results.clean,
        "stopped": results.stopped,
        "faults": len(results.strikes),
        "findings": asdict(results.findings),
        "recovery_seconds": results.recovery_seconds,
        "recovery_goal_seconds": RECOVERY_GOAL_SECONDS,
        "complete": asdict(results.complete) if results.complete is not None else None,
        "kinds": [asdict(line) for line in results.lines],
        "strikes": [asdict(strike) for strike in results.strikes],
    }
