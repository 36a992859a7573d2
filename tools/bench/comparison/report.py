"""The results as tables for the console and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tools.bench.comparison.results import PEERS, Goal, Line, Measurement, Results, Spread, goals
from tools.bench.copiers.settings import Copier
from tools.bench.limit.model import Bound, Half
from tools.bench.machine.description import Machine
from tools.bench.workloads.workload import Workload

_UNKNOWN = "-"
#: For columns of ratios.
_SHORT: Mapping[Copier, str] = {
    Copier.MM2_DEFAULT: "default",
    Copier.MM2_TUNED: "tuned",
    Copier.CLIENT_LOOP: "loop",
}


def print_report(console: Console, results: Results, machine: Machine, setup: Mapping[str, int | str]) -> None:
    """Print everything on the terminal: speed, CPU, the limit, goals."""
    console.print(_machine_line(machine, setup))
    console.print(speed_table(results, rounds=int(setup["rounds"])))
    console.print(cpu_table(results))
    if results.limit_runs:
        console.print(bound_table(results))
    console.print(_notes(results))
    console.print(goal_table(goals(results)))
    warn_if_busy(console, machine)


def warn_if_busy(console: Console, machine: Machine) -> None:
    """Warn if other processes used the machine: such measurements have little value."""
    if machine.busy:
        console.print(
            f"The machine was busy before the start ({machine.busy_cores:.1f} cores): the results are not reliable.",
            style="bold yellow",
        )


def _machine_line(machine: Machine, setup: Mapping[str, int | str]) -> Text:
    parts = ", ".join(f"{value} {name}" for name, value in setup.items())
    return Text(f"{machine.line()}\n{parts}", style="dim")


def speed_table(results: Results, *, rounds: int) -> Table:
    """Return records and megabytes per second of each copier, and how many times as fast this project is."""
    table = Table(title="Records per second while copying (and MB/s of values)", title_justify="left")
    table.add_column("workload", overflow="fold")
    for copier in Copier:
        table.add_column(copier.label, justify="right")
    for peer in PEERS:
        table.add_column(f"x {_SHORT[peer]}", justify="right")
    for workload in results.workloads:
        lines = [results.line(workload, copier) for copier in Copier]
        table.add_row(
            f"{workload.title}\n[dim]{workload.name}[/]",
            *(_speed_cell(line, rounds) for line in lines),
            *(_times(results.speedup(workload, peer)) for peer in PEERS),
        )
    return table


def cpu_table(results: Results) -> Table:
    """Return CPU seconds of each copier in the same window."""
    table = Table(title="CPU seconds of the copier's processes while copying", title_justify="left")
    table.add_column("workload")
    for copier in Copier:
        table.add_column(copier.label, justify="right")
    for peer in PEERS:
        table.add_column(f"of {_SHORT[peer]}", justify="right")
    for workload in results.workloads:
        lines = [results.line(workload, copier) for copier in Copier]
        table.add_row(
            workload.name,
            *(f"{line.cpu_seconds.median:.2f}" if line else _UNKNOWN for line in lines),
            *(_share(results.cpu_share(workload, peer)) for peer in PEERS),
        )
    return table


def bound_table(results: Results) -> Table:
    """Return fetching alone, producing alone, both one after the other, and this project's share of that, round by
    round.
    """
    table = Table(title="Limit: records per second (and seconds)", title_justify="left")
    table.add_column("workload")
    for name in ("fetching alone", "producing alone", "bound", Copier.MIRROR.label, "of bound"):
        table.add_column(name, justify="right")
    for workload in results.workloads:
        limit, ours = results.bound(workload), results.line(workload, Copier.MIRROR)
        if limit is None:
            continue
        table.add_row(
            workload.name,
            f"{_limit_cell(limit.rate_of(Half.FETCHING), workload)}\n[dim]{limit.fetching.way}[/]",
            f"{_limit_cell(limit.rate_of(Half.PRODUCING), workload)}\n[dim]{limit.producing.way}[/]",
            _limit_cell(limit.rate, workload),
            _limit_cell(ours.rate.median, workload) if ours is not None else _UNKNOWN,
            _share_cell(results.share_of_bound(workload)),
        )
    return table


def _share_cell(share: Spread | None) -> str:
    if share is None:
        return _UNKNOWN
    return f"{_share(share.median)}\n[dim]{share.low * 100:.0f} to {share.high * 100:.0f}[/]"


def _limit_cell(rate: float, workload: Workload) -> str:
    return f"{_thousands(rate)} [dim]({workload.records / rate:.2f} s)[/]"


def goal_table(reached: tuple[Goal, ...]) -> Table:
    """Return the goals, and whether they were reached."""
    table = Table(title="Goal", title_justify="left")
    table.add_column("what")
    table.add_column("limit", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("by")
    table.add_column("")
    marks = {True: "[green]reached[/]", False: "[bold red]not reached[/]", None: "[dim]not measured[/]"}
    for goal in reached:
        value = _UNKNOWN if goal.value is None else f"{goal.value:.2f}"
        table.add_row(goal.text, f"{goal.limit:g}", value, goal.detail, marks[goal.reached])
    return table


def _notes(results: Results) -> RenderableType:
    own = [(each, each.own) for each in results.measurements if each.own is not None]
    lines = [
        "First record on the target to last, by its end offsets; see docs/performance.md. "
        "In brackets: the second half of the copy alone."
    ]
    lines += [
        f"mirror, {each.workload.name}, round {each.round}: run {figures.run_seconds:.2f} s "
        f"({figures.run_cpu_seconds:.2f} s CPU), copy stage as reported {figures.copy_seconds:.2f} s, "
        f"window {each.window.seconds:.2f} s, worker memory {figures.worker_peak_bytes / 2**20:.0f} MB "
        f"(idle {figures.worker_idle_bytes / 2**20:.0f} MB)"
        for each, figures in own
    ]
    if results.idle_seconds:
        idle = ", ".join(f"{seconds:.2f}" for seconds in results.idle_seconds)
        lines.append(f"mirror, nothing to copy: {idle} s")
    wrong = [each for each in results.measurements if not each.complete]
    failures = [Text(_difference(each), style="bold red") for each in wrong]
    return Group(*(Text(line, style="dim") for line in lines), *failures)


def _difference(each: Measurement) -> str:
    return (
        f"{each.copier.label}, {each.workload.name}: {each.comparison.target_records} of "
        f"{each.workload.records} records, "
        f"{each.comparison.differing} of {each.comparison.sampled} sampled ones differ"
    )


def _speed_cell(line: Line | None, rounds: int) -> str:
    if line is None:
        return _UNKNOWN
    cell = (
        f"{_thousands(line.rate.median)} [dim]({_thousands(line.second_half_rate.median)})[/]\n"
        f"[dim]{line.megabytes_per_second:.0f} MB/s[/]"
    )
    if rounds > 1:
        cell += f"\n[dim]{_thousands(line.rate.low)} to {_thousands(line.rate.high)}[/]"
    return cell if line.complete else f"[red]{cell}\nnot equal[/]"


def _thousands(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.0f} k"


def _times(ratio: float | None) -> str:
    return _UNKNOWN if ratio is None else f"{ratio:.1f}"


def _share(ratio: float | None) -> str:
    return _UNKNOWN if ratio is None else f"{ratio * 100:.0f} %"


def to_json(results: Results, machine: Machine, setup: Mapping[str, int | str]) -> dict[str, Any]:
    """Return all measurements, with the summary and the goals."""
    return {
        "machine": asdict(machine),
        "setup": dict(setup),
        "workloads": [asdict(workload) for workload in results.workloads],
        "summary": [_line(line) for line in _lines(results)],
        "ratios": [
            {
                "workload": workload.name,
                "speedup": {peer.value: results.speedup(workload, peer) for peer in PEERS},
                "cpu_share": {peer.value: results.cpu_share(workload, peer) for peer in PEERS},
                "share_of_bound": _spread(share) if (share := results.share_of_bound(workload)) else None,
            }
            for workload in results.workloads
        ],
        "bounds": [_bound(each) for each in map(results.bound, results.workloads) if each is not None],
        "limit_runs": [asdict(each) | {"workload": each.workload.name} for each in results.limit_runs],
        "idle_seconds": list(results.idle_seconds),
        "goals": [asdict(goal) for goal in goals(results)],
        "measurements": [_measurement(each) for each in results.measurements],
    }


def _lines(results: Results) -> list[Line]:
    lines = (results.line(workload, copier) for workload in results.workloads for copier in Copier)
    return [line for line in lines if line is not None]


def _line(line: Line) -> dict[str, Any]:
    return {
        "workload": line.workload.name,
        "copier": line.copier.value,
        "records_per_second": _spread(line.rate),
        "second_half_records_per_second": _spread(line.second_half_rate),
        "megabytes_per_second": line.megabytes_per_second,
        "cpu_seconds": _spread(line.cpu_seconds),
        "cpu_seconds_per_million_records": line.cpu_per_million,
        "equal": line.complete,
    }


def _bound(limit: Bound) -> dict[str, Any]:
    return {
        "workload": limit.workload.name,
        "fetching": asdict(limit.fetching),
        "producing": asdict(limit.producing),
        "seconds": limit.seconds,
        "records_per_second": limit.rate,
    }


def _spread(spread: Spread) -> dict[str, float]:
    return asdict(spread)


def _measurement(each: Measurement) -> dict[str, Any]:
    return {
        "workload": each.workload.name,
        "copier": each.copier.value,
        "round": each.round,
        "records": each.window.records,
        "seconds": each.window.seconds,
        "cpu_seconds": each.window.cpu_seconds,
        "comparison": asdict(each.comparison),
        "own": asdict(each.own) if each.own else None,
    }
