"""`mirror verify`: proof that the copy equals its source, record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli import (
    FlowCommand,
    Output,
    Progress,
    TopicsOption,
    begin_with,
    capped_table,
    flow_command,
    megabytes,
)
from mirror_lib.config.model import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.errors import ConfigurationError, NoLongerSelectedError
from mirror_lib.features.verify.findings import PartitionVerdict
from mirror_lib.features.verify.html import (
    DIFFERENCE_COLUMNS,
    PARTITION_COLUMNS,
    ROUTED_COLUMNS,
    ROUTED_DIFFERENCE_COLUMNS,
    difference_cells,
    remarks,
    routed_cells,
    routed_difference_cells,
    to_html,
)
from mirror_lib.features.verify.model import Budget, VerifyMode, VerifyPlan
from mirror_lib.features.verify.raw.local import BINS_PER_PROCESS, cores, run_locally
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.run import VerifyOptions, VerifyRunner, plan_flow_verification, verify_flow
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.rows import GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.private_files import write_private

_NAMED = 3

app = typer.Typer()


@app.command()
@begin_with(flow_command)
def verify(
    command: FlowCommand,
    topics: TopicsOption = None,
    mode: Annotated[
        str,
        typer.Option(
            help="full: everything on both sides; sample: random spans; recent: new records; state: the newest "
            "record of each key of compacted topics."
        ),
    ] = "full",
    max_bytes: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of bytes to read from the source, approximately.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(min=0, help="Maximum duration of the comparison in seconds.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample: the same seed selects the same spans.")] = 0,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of processes; default tasks.max, at most one per core.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan; read no records.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the report as an HTML page to this file.")] = None,
) -> None:
    """Compare the target with its source. Exit codes: 0 equal, 1 not verifiable, 3 different."""
    if mode not in list(VerifyMode):
        raise ConfigurationError(f"unknown --mode {mode}.", action=f"Use one of {', '.join(VerifyMode)}.")
    output, settings = command.output, command.settings
    at_once = processes or min(settings.tasks_max, cores())
    options = VerifyOptions(
        topics=tuple(topics or ()),
        mode=VerifyMode(mode),
        budget=Budget(max_bytes, max_seconds),
        seed=seed,
        tasks_max=at_once if at_once == 1 else at_once * BINS_PER_PROCESS,
    )
    with open_ledger(command.file) as ledger:
        gone = ledger.gaps_of_cause(str(settings.flow), NoLongerSelectedError.reason, (GapState.OPEN,))
        if gone:
            named = ", ".join(f"{gap.topic}-{gap.partition}" for gap in gone[:_NAMED])
            output.note(
                f"Not compared: {counted(len(gone), 'partition')} that the flow has copied and selects no longer, as "
                f"{named}. `mirror gaps list` says why."
            )
        if dry_run:
            _show_plan(output, settings, ledger, options)
            return
        report = _compare(output, settings, ledger, options, at_once)
    _show(output, report)
    if html is not None:
        write_private(html, to_html(report))
        output.note(f"Report: {html}")


def _show_plan(output: Output, flow: FlowConfig, ledger: Ledger, options: VerifyOptions) -> None:
    with output.progress(f"Reading the offsets of {flow.flow}"):
        plan = plan_flow_verification(flow, ledger, options)
    rows = [
        (*check.source, check.target.topic, len(check.ranges), check.records, megabytes(check.estimated_bytes))
        for check in plan.partitions
    ]
    capped_table(output, "partitions", ("topic", "partition", "on the target", "ranges", "records", "MB"), rows)
    _show_verdicts(output, "unverifiable", plan.unverifiable)
    output.document({"dry_run": True, "plan": plan.to_dict()})


def _compare(output: Output, flow: FlowConfig, ledger: Ledger, options: VerifyOptions, processes: int) -> VerifyReport:
    with output.progress(f"Verifying {flow.flow}: reading the offsets") as progress:
        return verify_flow(
            flow, ledger=ledger, make_runner=lambda plan: _runner(progress, plan, processes), options=options
        )


def _runner(progress: Progress, plan: VerifyPlan, processes: int) -> VerifyRunner:
    # In megabytes, since a bar that counts bytes is not readable.
    total = megabytes(plan.estimated_bytes) or None
    progress.update(0, total=total, description=f"Verifying {plan.flow}: {len(plan.partitions):,} partitions, MB")
    return run_locally(processes, lambda size: progress.advance(megabytes(size)))


def _show(output: Output, report: VerifyReport) -> None:
    output.document(report.to_dict())
    _show_verdicts(output, "verdicts", report.verdicts)
    if report.difference_count:
        rows = [
            (*verdict.source, *difference_cells(each)) for verdict in report.verdicts for each in verdict.differences
        ]
        capped_table(output, "differences", DIFFERENCE_COLUMNS, rows)
    if report.routed:
        _show_routed(output, report)
    if report.confidence is not None:
        output.note(report.confidence.sentence)
    if report.idle and report.verdicts:
        output.note(f"{counted(report.idle, 'more partition')} had no records to compare.")
    output.note(
        f"{report.sentence} {report.source_bytes / 1e6:,.1f} MB read from the source in {report.seconds:,.1f} s."
    )
    output.exit_code = report.exit_code


def _show_routed(output: Output, report: VerifyReport) -> None:
    order = sorted(report.routed, key=lambda verdict: (verdict.verdict.value == "equal", verdict.target))
    capped_table(output, "routed_verdicts", ROUTED_COLUMNS, [routed_cells(each) for each in order])
    rows = [cells for verdict in order for cells in routed_difference_cells(verdict)]
    if rows:
        capped_table(output, "routed_differences", ROUTED_DIFFERENCE_COLUMNS, rows)


def _show_verdicts(output: Output, name: str, verdicts: tuple[PartitionVerdict, ...]) -> None:
    # Differences come first: the table is cut.
    order = sorted(verdicts, key=lambda verdict: (verdict.verdict.value == "equal", verdict.source))
    rows = [
        (
            *verdict.source,
            verdict.verdict.value,
            verdict.source_first,
            verdict.source_next,
            verdict.records,
            megabytes(verdict.source_bytes),
            verdict.compacted_records,
            verdict.expired_records,
            verdict.skipped,
            verdict.difference_count,
            "; ".join(remarks(verdict)),
        )
        for verdict in order
    ]
    capped_table(output, name, PARTITION_COLUMNS, rows)
