"""`mirror cutover`: move the writers and readers of some topics to the target, step by step, and back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from mirror_lib.cli import (
    ConfigOption,
    DryRunOption,
    FlowCommand,
    FlowOption,
    JsonOption,
    MasterOption,
    NoteOption,
    Output,
    Progress,
    YesOption,
    ask_confirmation,
    begin_with,
    capped_errors,
    capped_table,
    command_group,
    flow_command,
    person,
    report_errors,
)
from mirror_lib.cli.run.spark_submit import Job, RunFiles, running_job
from mirror_lib.config.loader import load
from mirror_lib.config.secrets.lookup_context import without_lookups
from mirror_lib.counted import counted
from mirror_lib.errors import MirrorError
from mirror_lib.features.cutover import machine, report
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.failback.after_disaster import apply_return
from mirror_lib.features.cutover.failback.return_plan import plan_return
from mirror_lib.features.cutover.job import as_data
from mirror_lib.features.cutover.job_arguments import CutoverArguments
from mirror_lib.features.cutover.machine import Progress as CutoverProgress
from mirror_lib.features.cutover.machine import create
from mirror_lib.features.cutover.model import (
    Confirmation,
    CutoverDefinition,
    Fence,
    Step,
    StepState,
    Style,
    VerifyScope,
)
from mirror_lib.features.cutover.opening import failback_of, open_cutover
from mirror_lib.features.cutover.records import attempts_of
from mirror_lib.features.cutover.report import sentence, time_line
from mirror_lib.features.cutover.states import disaster as disaster_states
from mirror_lib.features.cutover.states import shown as states_shown
from mirror_lib.features.cutover.states.cutover import Event
from mirror_lib.features.cutover.states.disaster import STATES, DisasterState, do
from mirror_lib.features.cutover.states.situation import answer, await_taken, require
from mirror_lib.features.cutover.steps.rollback import roll_back
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.handovers import enabled_opposite_of
from mirror_lib.ledger.location import open_ledger
from mirror_lib.spark.submit import LOCAL_MASTER, job_file

app = command_group("cutover")

_POLL_SECONDS = 0.5
_LINE_COLUMNS = ("step", "state", "seconds", "found")
_LIST_COLUMNS = ("cutover", "flow", "state", "step", "begun", "by")
_GATE_COLUMNS = ("step", "gate", "passed", "found", "action")

_NameArgument = Annotated[str, typer.Argument(help="Name of the cutover.")]


class _CutoverCommand(NamedTuple):
    """A command about one cutover."""

    output: Output
    context: CutoverContext


@contextmanager
def _cutover_command(
    name: _NameArgument, config: ConfigOption, as_json: JsonOption = False
) -> Iterator[_CutoverCommand]:
    with report_errors(as_json) as output:
        file = load(config)
        with open_ledger(file) as ledger:
            definition = open_cutover(ledger, name)
            last = attempts_of(ledger, name)
            context = CutoverContext(definition=definition, config=file, ledger=ledger, by=person(), last=last)
            yield _CutoverCommand(output, context)


@app.command()
@begin_with(report_errors)
def new(
    output: Output,
    name: _NameArgument,
    config: ConfigOption,
    flow: FlowOption,
    topics: Annotated[list[str], typer.Option(help="Java regex of source topics to move; repeatable.")],
    groups: Annotated[
        list[str] | None, typer.Option(help="Java regex of consumer groups to move; default: all groups of the flow.")
    ] = None,
    style: Annotated[Style, typer.Option(help="Order in which clients move.")] = Style.TOGETHER,
    fence: Annotated[
        Fence, typer.Option(help="How producers are stopped on the source: by the operator, or by ACLs.")
    ] = Fence.OPERATOR,
    writers: Annotated[
        list[str] | None,
        typer.Option("--writer", help="With `--fence acl`: principal to deny, such as User:app; repeatable."),
    ] = None,
    compare: Annotated[
        VerifyScope, typer.Option(help="What the rehearsal compares: everything, or only ranges not compared before.")
    ] = VerifyScope.RECENT,
    max_duplicates: Annotated[
        int, typer.Option(min=0, help="Maximum duplicates on failover (records), across all groups.")
    ] = 0,
    max_skipped: Annotated[int, typer.Option(min=0, help="Maximum skipped records, across all groups.")] = 0,
    may_split: Annotated[
        list[str] | None, typer.Option(help="Java regex of groups and transactional ids that may be split; repeatable.")
    ] = None,
    may_reset: Annotated[
        list[str] | None,
        typer.Option(
            help="Java regex of groups that may start at auto.offset.reset where they have no offset; repeatable."
        ),
    ] = None,
    quiet_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds without a new source record before producers count as stopped.")
    ] = 10.0,
    drain_seconds: Annotated[float, typer.Option(min=0, help="Maximum duration of the drain step in seconds.")] = 600.0,
    max_lag: Annotated[int, typer.Option(min=0, help="Maximum lag (records) when producers are stopped.")] = 10_000,
    watch_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for clients to arrive on the target; 0: do not wait.")
    ] = 300.0,
    failback: Annotated[bool, typer.Option("--failback/--no-failback", help="Require a failback flow.")] = True,
    with_withdrawn: Annotated[
        bool, typer.Option("--with-withdrawn", help="Also release ACLs that were removed from the source.")
    ] = False,
) -> None:
    """Define a cutover; nothing is executed. `mirror cutover run NAME --until preflight` lists what blocks it."""
    definition = CutoverDefinition(
        name=name,
        flow=flow,
        topics=tuple(topics),
        groups=tuple(groups or (".*",)),
        style=style,
        fence=fence,
        writers=tuple(writers or ()),
        scope=compare,
        max_duplicates=max_duplicates,
        max_skipped=max_skipped,
        may_split=tuple(may_split or ()),
        may_reset=tuple(may_reset or ()),
        quiet_seconds=quiet_seconds,
        drain_seconds=drain_seconds,
        max_lag=max_lag,
        watch_seconds=watch_seconds,
        require_failback=failback,
        with_withdrawn=with_withdrawn,
    )
    file = load(config)
    with open_ledger(file) as ledger:
        _define(output, CutoverContext(definition=definition, config=file, ledger=ledger, by=person()))


def _define(output: Output, context: CutoverContext) -> None:
    definition = context.definition
    create(context.ledger, definition, by=context.by, context=context)
    output.document({"cutover": definition.to_dict()})
    output.note(f"Cutover {definition.name} is defined. Start it: mirror cutover run {definition.name}")


@app.command()
@begin_with(_cutover_command)
def run(
    command: _CutoverCommand,
    until: Annotated[Step | None, typer.Option(help="Last step to run; default: all steps.")] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for the operator at each step that needs confirmation.")
    ] = 0.0,
    confirmation: Annotated[
        Confirmation | None, typer.Option("--confirm", help="Confirm the pending step and continue.")
    ] = None,
    note: NoteOption = None,
    master: MasterOption = LOCAL_MASTER,
) -> None:
    """Run the next steps of a cutover. Exit code 3 if a gate fails or an operator must act, 1 to run it again.

    With `--wait`, one Spark session stays warm across all steps: confirm from another console, and producers are
    stopped for only a few seconds.
    """
    output, context = command
    name = context.definition.name
    files = RunFiles.of(f"cutover-{name}-{uuid.uuid4()}")
    arguments = CutoverArguments(
        Path(context.config.path).absolute(),
        name,
        context.by,
        until,
        wait,
        files.report,
        confirm=Step(confirmation.value) if confirmation else None,
        note=note,
    )
    code = _run_job(output, arguments.command_line(), name, files, master, context)
    output.note(f"Job log: {files.log}")
    done = _show(command)
    _show_failed_gates(output, done)
    _fail_as(files, output, code)


@app.command()
@begin_with(_cutover_command)
def confirm(
    command: _CutoverCommand,
    step: Annotated[
        Confirmation, typer.Argument(help="freeze: producers are stopped; approve: the switch is approved.")
    ],
    note: NoteOption = None,
    yes: YesOption = False,
) -> None:
    """Confirm a step to the process that waits for it: freeze (producers are stopped), or approve (the switch).

    Refused if no process runs the cutover: use `mirror cutover run NAME --confirm STEP` then.
    """
    output, context = command
    name = context.definition.name
    require(_show(command).present, Event.YES)
    if not yes and not ask_confirmation(f"Confirm {step.value} of cutover {name}?"):
        output.note("Not confirmed.")
        output.exit_code = 3
        return
    question = answer(context.ledger, name, Step(step.value), yes=True, by=context.by, note=note or "")
    with output.progress("Waiting for the process that runs the cutover"):
        await_taken(context.ledger, question)
    output.exit_code = 0
    output.note(f"{step.value} is confirmed; the cutover continues.")


@app.command()
@begin_with(_cutover_command)
def status(command: _CutoverCommand) -> None:
    """Show the steps, gates and times of a cutover. Reads only the ledger. Exit code 3 if operator action is needed."""
    gates = [
        (attempt.step.value, gate.name, gate.passed, gate.what, "" if gate.passed else gate.action)
        for attempt in _show(command).attempts
        for gate in attempt.gates
    ]
    capped_table(command.output, "gates", _GATE_COLUMNS, gates)


@app.command()
def states(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables of docs/runbooks.md.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the states of a cutover with the effect of each event, and the states of a failback after a disaster.

    Checks that each state can be left.
    """
    with report_errors(as_json) as output:
        if markdown and not as_json:
            typer.echo(f"{states_shown.markdown()}\n{disaster_states.markdown()}", nl=False)
            return
        output.table("states", states_shown.COLUMNS, states_shown.table())
        output.table("after_disaster", ("state", "meaning", "action"), list(disaster_states.rows()))
        found = states_shown.problems()
        output.document({"problems": found})
        for each in found:
            output.note(f"FAILED {each}")
        output.exit_code = 1 if found else 0
        if not found:
            output.note("passed: every state can be left, and a cutover that no process runs cannot be confirmed.")


@app.command("list")
@begin_with(report_errors)
def list_(output: Output, config: ConfigOption) -> None:
    """List all cutovers, newest first."""
    with without_lookups(), open_ledger(load(config)) as ledger:
        rows = [
            (
                each.name,
                each.flow,
                each.state,
                each.step,
                each.created_at.isoformat(timespec="seconds"),
                each.created_by,
            )
            for each in Cutovers(ledger).newest()
        ]
        capped_table(output, "cutovers", _LIST_COLUMNS, rows)
        if not rows:
            output.note("No cutovers found.")


@app.command()
@begin_with(_cutover_command)
def rollback(command: _CutoverCommand, note: NoteOption = None, yes: YesOption = False) -> None:
    """Roll a cutover back before anything is produced to the target. Then start producers on the source again."""
    output, context = command
    name = context.definition.name
    if not yes and not ask_confirmation(f"Roll back cutover {name}?"):
        output.note("Nothing was changed.")
        output.exit_code = 3
        return
    undone = roll_back(context, note=note or "")
    for gate in undone:
        output.note(str(gate))
    output.document({"undone": [gate.to_dict() for gate in undone]})
    output.exit_code = 0 if all(gate.passed for gate in undone) else 1
    if output.exit_code == 0:
        output.note(f"Cutover {name} was rolled back: producers and consumers may continue on the source.")


@app.command()
@begin_with(_cutover_command)
def back(
    command: _CutoverCommand,
    as_name: Annotated[str | None, typer.Option("--as", help="Name of the new cutover; default NAME-back.")] = None,
) -> None:
    """Define the failback of cutover NAME: it moves the same topics and groups back and copies only later changes."""
    context = command.context
    context.definition = failback_of(context.config, context.ledger, context.definition.name, as_name)
    _define(command.output, context)


@app.command()
@begin_with(flow_command)
def after_disaster(
    command: FlowCommand,
    topics: Annotated[
        list[str] | None, typer.Option(help="Java regex of source topics; default: all topics of the flow.")
    ] = None,
    note: NoteOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Continue the failback flow after the lost source cluster is available again; --flow is the flow that led away.

    Reports the records that never reached the target, and stores them in the ledger. The flow no longer copies these
    topics; the failback flow copies records written to the target since. Exit code 3 if a partition needs operator
    action.
    """
    output, file, settings = command.output, command.file, command.settings
    patterns = topics or [".*"]
    with command.progress():
        plan = plan_return(settings, enabled_opposite_of(file, settings), patterns)
    for each in plan.partitions:
        output.note(str(each))
    if plan.staying:
        output.note(plan.staying_text)
    back, done = plan.opposite, False
    if not plan.errors and not dry_run:
        if yes or ask_confirmation(f"Hand over {counted(len(plan.partitions), 'partition')} to flow {back.flow}?"):
            with open_ledger(file) as ledger:
                agreed = plan.fingerprint
                plan = apply_return(settings, back, ledger, patterns, agreed=agreed, by=person(), note=note)
            done = not plan.errors
        else:
            output.exit_code = 3
    state = DisasterState.HANDED_OVER if done else DisasterState.REFUSED if plan.errors else DisasterState.PLANNED
    if not done:
        output.note("Nothing was changed.")
    capped_errors(output, plan.errors)
    if plan.errors:
        output.exit_code = max(error.exit_code for error in plan.errors)
    partitions = [each.to_dict() for each in plan.partitions]
    todo = do(state, settings.flow)
    output.document({"partitions": partitions, "staying": list(plan.staying), "done": done, "action": todo})
    output.note(f"{STATES[state].description} {todo}")


def _run_job(
    output: Output, arguments: list[str], name: str, files: RunFiles, master: str, context: CutoverContext
) -> int:
    job = Job(
        title=f"mirror cutover {name}",
        file=job_file().with_name("cutover.py"),
        arguments=arguments,
        interrupted=f"cutover {name} was interrupted.",
        what_then=f"Nothing is lost. Continue: `mirror cutover run {name}`; or roll it back: `mirror cutover rollback "
        f"{name}`.",
        transforms=any(
            each.transforms for each in context.config.enabled_flows if str(each.flow) == context.definition.flow
        ),
    )
    with (
        output.progress(f"Cutover {name}: starting Spark", total=1) as progress,
        running_job(job, master=master, log=files.log) as child,
    ):
        while (code := child.wait(_POLL_SECONDS)) is None:
            _follow(progress, context)
    return code


def _follow(progress: Progress, context: CutoverContext) -> None:
    try:
        done = machine.progress(context.ledger, context.definition)
    except MirrorError:
        # Failing to show the progress must not end the run.
        return
    passed, steps = report.passed_steps(done)
    progress.update(passed, total=steps, description=f"Cutover {done.definition.name}: {done.step.value}")


def _show(command: _CutoverCommand) -> CutoverProgress:
    """Show the present progress of the cutover, and return it."""
    output, context = command
    done = machine.progress(context.ledger, context.definition)
    output.table("time_line", _LINE_COLUMNS, time_line(done))
    output.document(as_data(done))
    output.note(sentence(done))
    output.exit_code = done.exit_code
    return done


def _show_failed_gates(output: Output, done: CutoverProgress) -> None:
    """Show what to do about each gate that stopped the cutover: only gates of the newest attempt at its failed step."""
    attempts = [attempt for attempt in done.attempts if attempt.step is done.step]
    if attempts and attempts[-1].state is StepState.FAILED:
        for gate in attempts[-1].gates:
            if not gate.passed:
                output.note(str(gate))


def _fail_as(files: RunFiles, output: Output, code: int) -> None:
    """Exit with the job's code; a job that failed as a whole has recorded the reason, or has left only its log."""
    if code == 0:
        return
    try:
        stored_report = json.loads(files.report.read_text())
    except (OSError, ValueError):
        raise MirrorError("the job ended without a report.", action=f"See its log: {files.log}") from None
    if "error" in stored_report:
        output.note(f"error: {stored_report['error']['what']} {stored_report['error'].get('action', '')}")
    output.exit_code = int(stored_report["exit_code"])
