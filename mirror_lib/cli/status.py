"""`mirror status`: results of runs, from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from mirror_lib.cli.flow_options import capped_table, megabytes, one_file
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output, report_errors
from mirror_lib.cli.rounds import show_rounds
from mirror_lib.config.loader import load
from mirror_lib.config.local_state import CONFIG_VARIABLE
from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.secrets.lookup_context import without_lookups
from mirror_lib.counted import counted
from mirror_lib.errors import ConfigurationError
from mirror_lib.installed_features import installed_features
from mirror_lib.ledger.location import default_ledger_url, ledger_url
from mirror_lib.ledger.queries.copy_rounds import FlowLag
from mirror_lib.ledger.rows import PartitionRunRow, RunRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.gaps import OpenGaps
from mirror_lib.past_runs.outlooks import duration
from mirror_lib.past_runs.run_totals import topic_totals
from mirror_lib.past_runs.speeds import copy_speed

_RUN_COLUMNS = ("run", "flow", "state", "started", "seconds", "partitions", "records", "MB", "started by", "error")
_TOTAL_COLUMNS = ("topic", "on the target", "partitions", "records", "MB", "seconds", "failed")
_PARTITION_COLUMNS = ("topic", "partition", "round", "state", "from", "to", "next", "records", "MB", "seconds")
_FAILURE_COLUMNS = ("topic", "partition", "round", "reason", "what")
_LAG_COLUMNS = (
    "flow",
    "observed",
    "run",
    "partitions",
    "planned",
    "lag (offsets)",
    "lagging partitions",
    "time to copy",
)
_GAP_COLUMNS = ("flow", "cause", "gaps", "since", "topics")
_OTHER_COLUMNS = ("flow", "partitions", "last copied", "lag (records)", "observed", "why it does not run")
#: Deleted topics are listed this long; `mirror gaps list` has all.
_DAYS_SHOWN = 7
#: Of one run: a run with many rounds may have thousands.
_ROUNDS_SHOWN = 1_000


app = typer.Typer()


@app.command()
@begin_with(report_errors)
def status(
    output: Output,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Properties file that names the ledger; without one: the SQLite file in the state folder.",
            metavar="FILE",
            envvar=CONFIG_VARIABLE,
            callback=one_file,
        ),
    ] = None,
    flow: Annotated[str | None, typer.Option(help="Only runs of this flow, SOURCE->TARGET.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of runs to list, newest first.")] = 20,
    run: Annotated[str | None, typer.Option(help="Show one run with its partitions.", metavar="RUN_ID")] = None,
    rounds: Annotated[
        bool,
        typer.Option(
            "--rounds", help="List the latest rounds: expected and actual cost, and the age of their records."
        ),
    ] = False,
) -> None:
    """List the latest runs, or one run with its partitions; changes nothing."""
    file = _file(config)
    url = default_ledger_url() if file is None else ledger_url(file)
    if _is_missing(url):
        output.document(
            {"rounds": [], "expectations": None}
            if rounds
            else {"runs": [], "lag": [], "open_gaps": [], "deleted_topics": []}
        )
        if run is not None:
            raise _no_such_run(run)
        output.note("No ledger yet: the first run creates it.")
        return

    with Ledger.open(url) as ledger:
        # The first run may be making the tables, or no run may have begun since an upgrade.
        ledger.migrate()
        if rounds:
            show_rounds(output, ledger.rounds(flow, limit, run_id=run))
        elif run is not None:
            _show_run(output, ledger, run)
        else:
            _show_runs(output, ledger, ledger.runs(flow, limit), datetime.now(UTC))
            _show_lag(output, ledger, flow)
            _show_open_gaps(output, ledger, flow)
            _show_other_flows(output, ledger, file, flow)
        _show_gone_features(output, ledger)


def show_totals(output: Output, rows: Sequence[PartitionRunRow]) -> None:
    """Show what runs copied, topic by topic; rows come oldest first."""
    totals = topic_totals(rows)
    capped_table(
        output,
        "copied",
        _TOTAL_COLUMNS,
        [
            (
                total.topic,
                total.target_topic,
                total.partitions,
                total.records,
                megabytes(total.bytes),
                round(total.seconds, 2),
                total.failed,
            )
            for total in totals
        ],
    )
    output.document({"copied": [total.to_dict() for total in totals]})


def _show_runs(output: Output, ledger: Ledger, runs: Sequence[RunRow], now: datetime) -> None:
    dead = ledger.dead_runs(runs)
    if runs:
        output.table("runs", _RUN_COLUMNS, [_run_cells(run, now, run.id in dead) for run in runs])
    else:
        output.note("No runs found.")
    output.document({"runs": [_run_data(run, now, run.id in dead) for run in runs]})


def _show_lag(output: Output, ledger: Ledger, flow: str | None) -> None:
    """Show the lag that the newest runs found and left, and its duration at the recent speed; connects to no
    cluster.
    """
    found = [lag for name, lag in ledger.flow_lags().items() if flow in (None, name)]
    timed = [(lag, _seconds_left(ledger, lag)) for lag in found]
    capped_table(output, "lag", _LAG_COLUMNS, [_lag_cells(lag, seconds) for lag, seconds in timed])
    output.document({"lag": [_plain(lag._asdict()) | {"seconds_left": seconds} for lag, seconds in timed]})
    if found:
        output.note("Offsets as planned by the latest runs; `mirror plan` shows the current lag.")


def _show_open_gaps(output: Output, ledger: Ledger, flow: str | None) -> None:
    found = [each for each in ledger.open_gaps_by_cause() if flow in (None, each.flow)]
    cells = [(*each[:3], _moment(each.since), _first_topics(each)) for each in found]
    capped_table(output, "open_gaps", _GAP_COLUMNS, cells)
    if found:
        output.note("Each gap needs a decision: `mirror gaps list --flow FLOW` shows it.")
    gone = [
        each
        for each in ledger.deleted_topics(datetime.now(UTC) - timedelta(days=_DAYS_SHOWN))
        if flow in (None, each.flow)
    ]
    output.document(
        {"deleted_topics": [{"flow": each.flow, "topics": each.topics, "first": list(each.named)} for each in gone]}
    )
    for each in gone:
        output.note(
            f"Flow {each.flow}: {counted(each.topics, 'topic was', 'topics were')} deleted at the source in the last "
            f"{_DAYS_SHOWN} days, after being copied up to the log end that was observed last: {_first_topics(each)}."
        )


def _first_topics(found: OpenGaps) -> str:
    more = found.topics - len(found.named)
    return ", ".join(found.named) + (f", and {more:,} more" if more else "")


def _show_other_flows(output: Output, ledger: Ledger, file: MirrorConfig | None, flow: str | None) -> None:
    """Show flows that have copied and that the file does not run: none of its runs copies what was written since."""
    if file is None:
        return
    runs = {str(each.flow) for each in file.enabled_flows}
    found = [each for each in ledger.copied_flows() if each.flow not in runs and flow in (None, each.flow)]
    cells = []
    for each in found:
        row = ledger.observations.newest(each.flow)
        lag = (None, None) if row is None else (row.records_behind, _moment(row.observed_at))
        is_known = {*each.flow.split("->")} <= {*file.clusters}
        why = "not enabled" if is_known else "not in the file: another file runs it, or an alias was renamed"
        cells.append((each.flow, each.partitions, _moment(each.updated_at), *lag, why))
    capped_table(output, "other_flows", _OTHER_COLUMNS, cells)


def _show_gone_features(output: Output, ledger: Ledger) -> None:
    here = {each.name for each in installed_features().ready}
    for name in ledger.features_with_tables():
        if name not in here:
            output.note(f"The ledger has tables of the feature {name}, which cannot be used here: they stay untouched.")


def _moment(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")


def _seconds_left(ledger: Ledger, lag: FlowLag) -> float | None:
    if not lag.lag_offsets:
        return 0.0
    speed = copy_speed(ledger.newest_rounds(lag.flow))
    return None if speed is None else round(lag.lag_offsets / speed.records_per_second, 3)


def _lag_cells(lag: FlowLag, seconds: float | None) -> tuple[Any, ...]:
    return (
        lag.flow,
        _moment(lag.updated_at),
        lag.run_id,
        lag.partitions,
        lag.planned,
        lag.lag_offsets,
        lag.lagging_partitions,
        "unknown" if seconds is None else "nothing" if not lag.lag_offsets else duration(seconds),
    )


def _show_run(output: Output, ledger: Ledger, run_id: str) -> None:
    found = ledger.run(run_id)
    if found is None:
        raise _no_such_run(run_id)
    now, died = datetime.now(UTC), found.id in ledger.dead_runs([found])
    rows = ledger.partition_runs(run_id)
    output.values("run", dict(zip(_RUN_COLUMNS, _run_cells(found, now, died), strict=True)))
    show_totals(output, rows)
    # Failures first: of many partitions the console shows the beginning.
    ordered = sorted(rows, key=lambda row: (row.state != "failed", row.topic, row.partition, row.round))
    capped_table(output, "partitions", _PARTITION_COLUMNS, [_partition_cells(row) for row in ordered])
    failures = [
        (row.topic, row.partition, row.round, row.reason, row.detail) for row in ordered if row.state == "failed"
    ]
    capped_table(output, "failures", _FAILURE_COLUMNS, failures)
    rounds = [row.to_dict() for row in reversed(ledger.rounds(run_id=run_id, limit=_ROUNDS_SHOWN))]
    output.document(
        {"run": _run_data(found, now, died), "partitions": [_plain(asdict(row)) for row in ordered], "rounds": rounds}
    )


def _run_cells(run: RunRow, now: datetime, died: bool) -> tuple[Any, ...]:
    return (
        run.id,
        run.flow,
        "died" if died else run.state,
        _moment(run.started_at),
        round(_seconds(run, now), 1),
        run.planned_partitions,
        run.records,
        megabytes(run.bytes),
        run.trigger,
        _error_text(run, now, died),
    )


def _run_data(run: RunRow, now: datetime, died: bool) -> dict[str, Any]:
    return {
        **_plain({name: getattr(run, name) for name in run.__slots__}),
        "seconds": round(_seconds(run, now), 3),
        "silent_seconds": round(_silence(run, now), 3),
        "died": died,
    }


def _partition_cells(row: PartitionRunRow) -> tuple[Any, ...]:
    return (
        row.topic,
        row.partition,
        row.round,
        row.state,
        row.start_offset,
        row.end_offset,
        row.source_next,
        row.records,
        megabytes(row.bytes),
        round(row.seconds, 2),
    )


def _error_text(run: RunRow, now: datetime, died: bool) -> str:
    if run.error is not None:
        return f"{run.error.get('reason', 'error')}: {run.error.get('what', '')}"
    # It no longer holds its flow's lock.
    return (
        (
            f"run-died: the run has not renewed its lock for {_silence(run, now):.0f} s; the next run continues at its "
            "last position"
        )
        if died
        else ""
    )


def _seconds(run: RunRow, now: datetime) -> float:
    return ((run.finished_at or now) - run.started_at).total_seconds()


def _silence(run: RunRow, now: datetime) -> float:
    """Return the seconds since a running run renewed its lock; 0 if it has ended."""
    return 0.0 if run.finished_at is not None else max((now - run.heartbeat_at).total_seconds(), 0.0)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


def _file(config: Path | None) -> MirrorConfig | None:
    if config is None:
        return None
    with without_lookups():
        return load(config)


def _is_missing(url: str) -> bool:
    """Return True if the ledger is a SQLite file that does not exist: opening it would create an empty one."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # `Ledger.open` reports the error, without showing the text.
        return False
    return parsed.get_backend_name() == "sqlite" and bool(parsed.database) and not Path(str(parsed.database)).exists()


def _no_such_run(run_id: str) -> Exception:
    return ConfigurationError(
        f"run {run_id} is not in the ledger.",
        action="`mirror status` lists the latest runs; --config selects the ledger.",
    )
