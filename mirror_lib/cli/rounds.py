"""Show rounds: expected and actual cost, and the age of the records at the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirror_lib.cli.flow_options import capped_table, megabytes
from mirror_lib.cli.output import Output
from mirror_lib.ledger.rows import RoundRow
from mirror_lib.past_runs.costs import accuracy
from mirror_lib.past_runs.outlooks import duration

_COLUMNS = (
    "run",
    "flow",
    "round",
    "began",
    "lag (offsets)",
    "MB expected",
    "MB",
    "seconds expected",
    "seconds",
    "planning",
    "oldest record",
    "newest record",
)


def show_rounds(output: Output, rounds: Sequence[RoundRow]) -> None:
    """Show rounds, newest first, and the accuracy of the expectations."""
    capped_table(output, "rounds", _COLUMNS, [_cells(row) for row in rounds])
    good = accuracy(rounds)
    output.document(
        {"rounds": [row.to_dict() for row in rounds], "expectations": None if good is None else good.to_dict()}
    )
    if not rounds:
        output.note("No rounds found.")
    if good is not None:
        sizes = "" if good.bytes is None else f" and copied {good.bytes:.2f} times the expected bytes"
        output.note(
            f"{good.rounds:,} rounds took {good.seconds:.2f} times the expected duration{sizes} (medians); the worst "
            f"took {good.worst_seconds:.2f} times."
        )


def _cells(row: RoundRow) -> tuple[object, ...]:
    return (
        row.run_id,
        row.flow,
        row.number,
        row.began_at.isoformat(sep=" ", timespec="seconds"),
        row.lag_records,
        None if row.expected_bytes is None else megabytes(row.expected_bytes),
        megabytes(row.bytes),
        None if row.expected_seconds is None else round(row.expected_seconds, 1),
        round(row.seconds, 1) if row.committed_at else "not committed",
        round(row.planning_seconds, 1),
        age_in_words(row.oldest_age_ms),
        age_in_words(row.newest_age_ms),
    )


def show_run_rounds(output: Output, rounds: Sequence[Mapping[str, Any]]) -> None:
    """Show expected and actual duration of a run's rounds, and the age of the records of the last of them.

    Args:
        rounds: as `RoundRow.to_dict` returns them, oldest first.
    """
    output.document({"round_lags": list(rounds)})
    committed = [row for row in rounds if row["committed_at"] is not None]
    if not committed:
        return
    judged = [row for row in committed if row["expected_seconds"] is not None]
    if judged:
        expected, took = (sum(row[name] for row in judged) for name in ("expected_seconds", "seconds"))
        output.note(f"Expected duration of its rounds after planning: {expected:.1f} s; actual: {took:.1f} s.")
    last = committed[-1]
    if last["oldest_age_ms"] is not None and last["newest_age_ms"] is not None:
        output.note(
            f"Last round that copied: at its commit the oldest record was {age_in_words(last['oldest_age_ms'])} old, "
            f"the newest {age_in_words(last['newest_age_ms'])}."
        )


def age_in_words(milliseconds: int | None) -> str:
    """Return the age of a record at the commit, for display."""
    if milliseconds is None:
        return ""
    return f"{milliseconds} ms" if milliseconds < 10_000 else duration(milliseconds / 1000)
