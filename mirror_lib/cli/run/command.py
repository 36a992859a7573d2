"""`mirror run`: one run of a flow without Airflow: heartbeats and target topics first, then the Spark job."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated

import typer

from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import (
    FAILURE_COLUMNS,
    DryRunOption,
    MasterOption,
    TasksOption,
    TopicsOption,
    capped_table,
    megabytes,
)
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output, Progress
from mirror_lib.cli.plan import show_plan
from mirror_lib.cli.rounds import show_run_rounds
from mirror_lib.cli.run.outcome import close_abandoned, read_report
from mirror_lib.cli.run.spark_submit import Job, RunFiles, running_job
from mirror_lib.cli.status import show_totals
from mirror_lib.cli.sync.topics import show_topics
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.health.after_run import observe_after_run
from mirror_lib.copy.job.arguments import ASK, GapChoice, JobArguments
from mirror_lib.copy.job.report import Failure, JobReport, SkippedRange
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import LedgerError
from mirror_lib.ledger.location import existing_ledger, open_ledger
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.spark.submit import LOCAL_MASTER
from mirror_lib.sync.heartbeats.flow import EmittedHeartbeat, emit_heartbeats
from mirror_lib.sync.heartbeats.rules import emitting_flows
from mirror_lib.sync.loops.flow import check_loops
from mirror_lib.sync.topics.flow import apply_flow_topics, plan_flow_topics

#: The members of `--json` about the run as a whole.
_FIGURES = ("exit_code", "records", "bytes", "skipped", "lost", "rounds", "idle", "seconds", "copy_seconds")
_SKIPPED_COLUMNS = ("topic", "partition", "from", "to", "records", "reason", "what", "quarantined")
_POLL_SECONDS = 1.0


app = typer.Typer()


@app.command()
@begin_with(flow_command)
def run(
    command: FlowCommand,
    topics: TopicsOption = None,
    tasks: TasksOption = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Start no new round after this many seconds; default mirror.run.max.seconds."),
    ] = None,
    bytes_per_second: Annotated[
        int | None, typer.Option(min=1, help="Maximum read rate in bytes/s; default mirror.rate.limit.bytes.")
    ] = None,
    gaps: Annotated[
        GapChoice,
        typer.Option(help="Resolution of gaps (records lost at the source); ask: the partition stops (`mirror gaps`)."),
    ] = ASK,
    dry_run: DryRunOption = False,
    no_topics: Annotated[
        bool,
        typer.Option(
            "--no-topics",
            help="Create no topics and emit no heartbeats. Partitions whose target topic is missing fail.",
        ),
    ] = False,
    master: MasterOption = LOCAL_MASTER,
) -> None:
    """Create missing topics, copy new records once, then exit; without Airflow. Ctrl-C stops it.

    Does not sync configs, ACLs and consumer groups, whatever the file enables: `mirror configs|acls|groups apply`.
    """
    settings = command.settings
    check_loops(command.file, settings, command.topology(topics))
    if not (no_topics or dry_run):
        # Before the topics, since the first heartbeat creates one.
        _emit_heartbeats(command)
    if not no_topics:
        step = plan_flow_topics if dry_run else apply_flow_topics
        show_topics(command.output, command.carry_out(step, topics, "Setting up topics of"))
    if dry_run:
        with command.known_ledger() as known:
            planned = plan_flow(settings, RunOptions(topics=tuple(topics or ()), tasks_max=tasks), known)
        command.output.document({"dry_run": True})
        show_plan(command.output, planned)
        return

    choices = JobArguments(
        config=command.config.absolute(),
        flow=str(settings.flow),
        topics=tuple(topics or ()),
        tasks=tasks,
        max_seconds=max_seconds,
        gaps=gaps,
        bytes_per_second=bytes_per_second,
    )
    with open_ledger(command.file) as ledger:
        run_id = copy_and_report(command, choices, master, ledger)
        _observe(command.output, settings, ledger, run_id)
    if settings.sync_group_offsets_enabled:
        command.output.note(
            "Consumer groups stay as they are (sync.group.offsets.enabled=true): the flow's DAG moves them, or "
            f"`mirror groups apply --config {command.config} --flow '{settings.flow}'`."
        )


def _observe(output: Output, flow: FlowConfig, ledger: Ledger, run_id: str) -> None:
    """Observe the flow at the end of a run, without effect on its outcome; errors are notes."""
    try:
        with output.progress(f"Observing {flow.flow}"):
            seen = observe_after_run(flow, ledger, run_id)
    except Exception as error:
        # The records are copied, whatever the error is.
        output.note(f"The current lag of the flow is unknown: {error}")
        return
    if seen is not None:
        output.document({"observed": seen.summary()})


def _emit_heartbeats(command: FlowCommand) -> None:
    """Emit heartbeats as in the flow's DAG: errors are reported and do not stop the run."""
    pairs = emitting_flows(command.file, command.settings.flow)
    emitted: tuple[EmittedHeartbeat, ...] = ()
    if pairs:
        with existing_ledger(command.file) or nullcontext() as ledger:
            emitted = emit_heartbeats(pairs, ledger)
    command.output.document({"heartbeats": [each.to_dict() for each in emitted]})
    for each in emitted:
        if each.error is not None:
            command.output.note(f"Warning: heartbeat of {each.pair}: {each.error}")


def copy_and_report(command: FlowCommand, choices: JobArguments, master: str, ledger: Ledger) -> str:
    """Copy by a Spark job, show the result, and return the run's id.

    Args:
        choices: the job's arguments without those of this run.

    Raises:
        MirrorError: as `copy_by_job`.
    """
    run_id = str(uuid.uuid4())
    files = RunFiles.of(run_id)
    arguments = replace(choices, run_id=run_id, trigger="cli", report=files.report)
    command.output.document({"run_id": run_id, "flow": arguments.flow})
    transforms = bool(command.settings.transforms)
    report = copy_by_job(command.output, arguments, files, master, ledger, transforms=transforms)
    show_report(command.output, report, ledger.partition_runs(run_id), files)
    return run_id


def copy_by_job(
    output: Output, arguments: JobArguments, files: RunFiles, master: str, ledger: Ledger, *, transforms: bool
) -> JobReport:
    """Run the job to its end.

    Args:
        transforms: True if the flow has any.

    Raises:
        MirrorError: it could not be started, was interrupted, failed as a whole, or ended without a report.
    """
    try:
        with (
            output.progress(f"Flow {arguments.flow}: starting Spark") as progress,
            running_job(Job.replicate(arguments, transforms=transforms), master=master, log=files.log) as child,
        ):
            while (code := child.wait(_POLL_SECONDS)) is None:
                _follow(progress, arguments, ledger)
        return read_report(files, code)
    finally:
        close_abandoned(ledger, arguments.run_id)


def _follow(progress: Progress, arguments: JobArguments, ledger: Ledger) -> None:
    try:
        rows = ledger.partition_runs(arguments.run_id)
    except LedgerError:
        # Progress is optional; the job handles a ledger that does not respond itself.
        return
    if not rows:
        return
    ended = sum(row.state in ("done", "failed") for row in rows)
    progress.update(
        sum(_offsets_passed(row) for row in rows),
        total=sum(row.end_offset - row.start_offset for row in rows),
        description=f"Flow {arguments.flow}: round {rows[-1].round}, {ended} of {len(rows)} partitions done",
    )


def _offsets_passed(row: PartitionRunRow) -> int:
    """Return how many of the planned offsets are passed: an offset need not have a record."""
    if row.state in ("done", "failed"):
        return min(row.source_next, row.end_offset) - row.start_offset
    return min(row.records, row.end_offset - row.start_offset)


def show_report(output: Output, report: JobReport, rows: Sequence[PartitionRunRow], files: RunFiles) -> None:
    """Show the result of a run; set the exit code."""
    show_totals(output, rows)
    failures = [_failure(failure) for failure in report.failures]
    capped_table(output, "failures", FAILURE_COLUMNS, [tuple(each.values()) for each in failures])
    deletions = [_failure(failure) for failure in report.deletions]
    capped_table(output, "deletions", FAILURE_COLUMNS, [tuple(each.values()) for each in deletions])
    capped_table(output, "skipped", _SKIPPED_COLUMNS, [_skipped_row(each) for each in report.skipped_ranges])
    output.values(
        "run",
        {
            "run": report.run_id,
            "records": report.records,
            "MB": megabytes(report.bytes),
            "partitions": len({(row.topic, row.partition) for row in rows}),
            "idle partitions": report.idle,
            "failed": len(failures),
            "skipped": report.skipped + report.lost,
            "rounds": report.rounds,
            "seconds": round(report.seconds, 2),
            "copying (seconds)": round(report.copy_seconds, 2),
        },
    )
    show_run_rounds(output, report.round_lags)
    for warning in report.warnings:
        output.note(f"Warning: {warning}")
    # A path in a table would be cut at a narrow terminal.
    output.note(f"Job log: {files.log}")
    figures = {name: getattr(report, name) for name in _FIGURES}
    output.document(
        {
            "failures": failures,
            "deletions": deletions,
            "run": {**figures, "log": str(files.log)},
            "warnings": list(report.warnings),
        }
    )
    if not report.exit_code and not report.records:
        output.note("Nothing to copy.")
    # Setup errors count even if there was nothing to copy.
    output.exit_code = report.exit_code or output.exit_code


def _skipped_row(each: SkippedRange) -> tuple[object, ...]:
    """Return the columns of `_SKIPPED_COLUMNS`; the last offset is inclusive."""
    place = (each.topic, each.partition, each.first_offset, each.next_offset - 1)
    return (*place, each.records, each.cause, each.detail, each.quarantined)


def _failure(failure: Failure) -> dict[str, object]:
    """Return the columns of `FAILURE_COLUMNS`."""
    return {
        "topic": failure.where.topic,
        "partition": failure.where.partition,
        "reason": failure.reason,
        "what": failure.what,
        "action": failure.action,
    }
