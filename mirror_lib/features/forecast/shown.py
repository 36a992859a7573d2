"""Show a forecast: partitions that need attention as a table, all in the JSON document."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isinf

from mirror_lib.cli import Output, capped_table, megabytes
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import MirrorError
from mirror_lib.features.forecast.plan import FlowForecast, forecast_plan
from mirror_lib.features.forecast.verdicts import PartitionForecast, deadline
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.planning.model import RunPlan

_COLUMNS = ("topic", "partition", "outlook", "offsets", "MB", "caught up", "retention may delete", "why")


def look_at_plan(flow: FlowConfig, plan: RunPlan, ledger: Ledger | None) -> Callable[[Output], None]:
    """Forecast a plan, and return what shows the forecast. The plan is shown regardless of errors."""
    try:
        return partial(show_forecast, forecast_plan(flow, plan, ledger))
    except MirrorError as error:
        return partial(show_forecast, error)


def show_forecast(expected: FlowForecast | MirrorError, output: Output) -> None:
    """Show when a flow will have caught up and which partitions retention endangers; an error is a note."""
    if isinstance(expected, MirrorError):
        output.document({"forecast": None, "forecast_error": expected.attributes()})
        output.note(f"No forecast: {expected}")
        return
    capped_table(output, "forecast", _COLUMNS, [_cells(each) for each in expected.worries])
    # Programs get all partitions, including those without problems.
    output.document({"forecast": expected.to_dict()})
    if expected.partitions:
        output.note(_summary(expected))


def _cells(each: PartitionForecast) -> tuple[object, ...]:
    return (
        each.source.topic,
        each.source.partition,
        each.outlook.value,
        each.lag,
        None if each.lag_bytes is None else megabytes(each.lag_bytes),
        in_words(each.catch_up_seconds),
        _deletion(each),
        each.reason,
    )


def _deletion(each: PartitionForecast) -> str:
    """Return the earlier of both; an unknown one may be earlier still."""
    known = [seconds for seconds in (each.deleted_by_time_seconds, each.deleted_by_size_seconds) if seconds is not None]
    if not known or (isinf(min(known)) and len(known) < 2):
        return in_words(None)
    return in_words(min(known))


def in_words(seconds: float | None) -> str:
    """Return a time from now for display."""
    return "unknown" if seconds is None else deadline(seconds)


def _summary(expected: FlowForecast) -> str:
    counts = {outlook: sum(each.outlook is outlook for each in expected.partitions) for outlook in Outlook}
    outlooks = ", ".join(f"{count:,} {outlook.value}" for outlook, count in counts.items() if count)
    seconds = expected.catch_up_seconds
    caught_up = "unknown" if seconds is None else in_words(seconds)
    text = f"Forecast: {outlooks}; caught up: {caught_up}."
    if expected.speed is None:
        return text
    at_least = "at least " if expected.speed.at_least else ""
    return f"{text} Recent copy rate: {at_least}{megabytes(round(expected.speed.bytes_per_second)):,.2f} MB/s."
