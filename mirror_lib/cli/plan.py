"""`mirror plan`: which offsets a run would copy now, and by which task."""

from __future__ import annotations

import time

import typer

from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import (
    FAILURE_COLUMNS,
    TasksOption,
    TopicsOption,
    capped_table,
    megabytes,
    show_paths,
)
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.counted import counted
from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features
from mirror_lib.past_runs.costs import Expectation
from mirror_lib.past_runs.outlooks import duration
from mirror_lib.planning.aborted_records import aborted_notes
from mirror_lib.planning.model import WHOLE_TOPIC, RunPlan
from mirror_lib.planning.open_transactions import open_transaction_notes
from mirror_lib.planning.unselected import unselected_notes
from mirror_lib.sync.loops.flow import check_loops

_TASK_COLUMNS = ("task", "partitions", "offsets", "MB")
_PARTITION_COLUMNS = ("topic", "partition", "on the target", "from", "to", "offsets", "MB", "task")


app = typer.Typer()


@app.command()
@begin_with(flow_command)
def plan(command: FlowCommand, topics: TopicsOption = None, tasks: TasksOption = None) -> None:
    """Show what a run would copy now; changes nothing. Exit code 3 if a partition needs operator action."""
    settings = command.settings
    check_loops(command.file, settings, command.topology(topics))
    with command.known_ledger() as known:
        planned = plan_flow(settings, RunOptions(topics=tuple(topics or ()), tasks_max=tasks), known)
        added = [look(settings, planned, known) for look in installed_features().at(Hook.PLAN)]
    show_plan(command.output, planned)
    for show in added:
        show(command.output)


def show_plan(output: Output, plan: RunPlan) -> None:
    """Show a plan: its tasks, partitions and problems; set exit code 3 if a problem needs an operator."""
    offsets = sum(partition.end - partition.start for partition in plan.partitions)
    capped_table(output, "tasks", _TASK_COLUMNS, _tasks(plan))
    capped_table(output, "partitions", _PARTITION_COLUMNS, _partitions(plan))
    # Otherwise every topic is copied unchanged.
    if any(path.transforms for path in plan.paths):
        show_paths(output, "paths", plan.paths)
    capped_table(output, "problems", FAILURE_COLUMNS, _problems(plan))
    # The same members as in the report of the job's own dry run.
    output.document(plan.to_dict())
    # An offset may have no record (compaction, markers), and not every broker reports sizes.
    output.note(
        f"Flow {plan.flow}: {counted(len(plan.partitions), 'partition')} to copy in "
        f"{counted(len(plan.bins), 'task')}, at most "
        f"{counted(offsets, 'record')}, about {megabytes(plan.estimated_bytes):,.2f} MB; {plan.idle:,} idle, "
        f"{len(plan.problems):,} cannot be copied."
    )
    if plan.expected is not None and plan.partitions:
        output.note(_expectation_text(plan.expected))
    for warning in (
        *plan.warnings,
        *open_transaction_notes(plan.hidden, now=time.time()),
        *aborted_notes(plan.flow, plan.copied_transactions),
        *unselected_notes(plan.flow, plan.unselected),
    ):
        output.note(f"Warning: {warning}")
    if plan.hidden:
        output.note(
            f"{counted(plan.hidden_offsets, 'offset')} in {counted(len(plan.hidden), 'partition')} are hidden "
            "by open transactions on "
            "the source; a run copies them after the transactions have ended."
        )
    if plan.stopped:
        output.note(f"{counted(plan.stopped, 'partition is', 'partitions are')} stopped: see `mirror gaps list`.")
    if any(problem.error.exit_code == 3 for problem in plan.problems):
        output.exit_code = 3


def _expectation_text(expected: Expectation) -> str:
    size = "unknown size" if expected.bytes is None else f"about {megabytes(expected.bytes):,.2f} MB"
    if expected.seconds is None:
        return f"Expected: {size}; duration unknown until a round of the flow has copied something."
    rate = expected.task_bytes_per_second
    speed = "" if rate is None else f" plus copying at {megabytes(round(rate)):,.2f} MB/s per task"
    made_of = (
        f"Estimated from {counted(expected.rounds, 'earlier round')}: {expected.fixed_seconds or 0.0:.1f} s fixed per "
        f"round{speed}, without planning and the start of Spark."
    )
    if expected.beyond_experience:
        made_of += " No earlier round copied nearly as much: the estimate assumes the best rate of all rounds."
    return f"Expected: {size} in about {duration(expected.seconds)}. {made_of}"


def _tasks(plan: RunPlan) -> list[tuple[object, ...]]:
    return [
        (
            number,
            len(bin_),
            sum(partition.end - partition.start for partition in bin_),
            megabytes(sum(partition.estimated_bytes for partition in bin_)),
        )
        for number, bin_ in enumerate(plan.bins)
    ]


def _partitions(plan: RunPlan) -> list[tuple[object, ...]]:
    placed = [(partition, number) for number, bin_ in enumerate(plan.bins) for partition in bin_]
    return [
        (
            partition.source.topic,
            partition.source.partition,
            partition.target.topic,
            partition.start,
            partition.end,
            partition.end - partition.start,
            megabytes(partition.estimated_bytes),
            number,
        )
        for partition, number in sorted(placed, key=lambda each: each[0].source)
    ]


def _problems(plan: RunPlan) -> list[tuple[object, ...]]:
    return [
        (
            problem.source.topic,
            None if problem.source.partition == WHOLE_TOPIC else problem.source.partition,
            problem.error.reason,
            problem.error.what,
            problem.error.action,
        )
        for problem in plan.problems
    ]
