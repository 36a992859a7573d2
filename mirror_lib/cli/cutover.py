"""`mirror cutover`: move the writers and readers of some topics to the target, step by step, and back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli.confirmation import NoteOption, YesOption, confirmed, person
from mirror_lib.cli.flow_options import ConfigOption, FlowOption, capped_errors, capped_table
from mirror_lib.cli.output import JsonOption, Output, Progress, reporting
from mirror_lib.cli.run import Job, RunFiles, running_job
from mirror_lib.config import load
from mirror_lib.config.secrets import without_lookups
from mirror_lib.errors import MirrorError
from mirror_lib.ledger import Ledger, enabled_opposite_of, load_flow_as_it_runs, open_ledger
from mirror_lib.runbook import (
    CutoverContext,
    CutoverDefinition,
    Fence,
    Step,
    Style,
    VerifyScope,
    as_data,
    attempts_of,
    create,
    failback_of,
    machine,
    open_cutover,
    report,
    sentence,
    time_line,
)
from mirror_lib.runbook import Progress as CutoverProgress
from mirror_lib.runbook.failback import apply_return, plan_return
from mirror_lib.runbook.states import STATES, DisasterState, Event, answer, await_taken, do, require
from mirror_lib.runbook.states import disaster as disaster_states
from mirror_lib.runbook.states import shown as states_shown
from mirror_lib.runbook.steps import roll_back
from mirror_lib.spark import LOCAL_MASTER, job_file

_app = typer.Typer(
    name="cutover",
    help="Move writers and readers to the target, with a gate at every step, and back.",
    no_args_is_help=True,
)
_POLL_SECONDS = 0.5
_LINE_COLUMNS = ("step", "state", "seconds", "found")
_LIST_COLUMNS = ("cutover", "flow", "state", "step", "begun", "by")
_GATE_COLUMNS = ("step", "gate", "passed", "found", "what to do")

_NameArgument = Annotated[str, typer.Argument(help="The cutover's name.")]
_StepOption = Annotated[Step | None, typer.Option("--until", help="The last step to take; default: to the end.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.command()
def new(
    name: _NameArgument,
    config: ConfigOption,
    flow: FlowOption,
    topics: Annotated[
        list[str], typer.Option("--topics", help="Java regex for source topics that move; may be given several times.")
    ],
    groups: Annotated[
        list[str] | None, typer.Option("--groups", help="Java regex for groups that move; default: all of the flow.")
    ] = None,
    style: Annotated[Style, typer.Option("--style", help="Who moves first.")] = Style.TOGETHER,
    fence: Annotated[
        Fence, typer.Option("--fence", help="How writers are kept from the source: by you, or by ACLs.")
    ] = Fence.OPERATOR,
    writers: Annotated[
        list[str] | None,
        typer.Option("--writer", help="With `--fence acl`: a principal to keep out, such as User:app; several times."),
    ] = None,
    compare: Annotated[
        VerifyScope, typer.Option("--compare", help="What the rehearsal compares: all, or what never was.")
    ] = VerifyScope.RECENT,
    max_read_again: Annotated[
        int, typer.Option("--max-read-again", min=0, help="Records that all groups together may read again.")
    ] = 0,
    max_skipped: Annotated[
        int, typer.Option("--max-skipped", min=0, help="Records that all groups together may skip.")
    ] = 0,
    may_split: Annotated[
        list[str] | None,
        typer.Option("--may-split", help="Java regex for groups and transactional ids that may be split; repeatable."),
    ] = None,
    still_seconds: Annotated[
        float, typer.Option("--still-seconds", min=0, help="How long the source must have stood still.")
    ] = 10.0,
    drain_seconds: Annotated[
        float, typer.Option("--drain-seconds", min=0, help="The time in which the drain must come to an end.")
    ] = 600.0,
    max_lag: Annotated[
        int, typer.Option("--max-lag", min=0, help="How much may be left to copy when the writers are stopped.")
    ] = 10_000,
    watch_seconds: Annotated[
        float, typer.Option("--watch-seconds", min=0, help="The time in which clients must arrive; 0: do not wait.")
    ] = 300.0,
    way_back: Annotated[
        bool, typer.Option("--way-back/--no-way-back", help="Whether a way back is a condition.")
    ] = True,
    with_withdrawn: Annotated[
        bool, typer.Option("--with-withdrawn", help="Release grants that the source has withdrawn since, too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Define a cutover; nothing is done yet. `mirror cutover run NAME --until preflight` tells what is in its way."""

    with reporting(as_json) as output:
        definition = CutoverDefinition(
            name=name,
            flow=flow,
            topics=tuple(topics),
            groups=tuple(groups or (".*",)),
            style=style,
            fence=fence,
            writers=tuple(writers or ()),
            scope=compare,
            max_read_again=max_read_again,
            max_skipped=max_skipped,
            may_split=tuple(may_split or ()),
            still_seconds=still_seconds,
            drain_seconds=drain_seconds,
            max_lag=max_lag,
            watch_seconds=watch_seconds,
            require_way_back=way_back,
            with_withdrawn=with_withdrawn,
        )
        with _desk_of(config, definition) as context:
            create(context.ledger, definition, by=context.by, context=context)
        output.document({"cutover": definition.to_dict()})
        output.note(f"Cutover {name} is defined. Begin it by: mirror cutover run {name}")


@_app.command()
def run(
    name: _NameArgument,
    config: ConfigOption,
    until: _StepOption = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for a person at each step that needs one.")
    ] = 0.0,
    word: Annotated[
        Step | None,
        typer.Option("--confirm", help="Answer what the last run asked (freeze, approve) by yes, and go on."),
    ] = None,
    note: NoteOption = None,
    master: Annotated[str, typer.Option("--master", help="Spark's master URL.")] = LOCAL_MASTER,
    as_json: JsonOption = False,
) -> None:
    """Take the cutover on from where it is, as far as it goes. Exit code 3 when a gate fails or a person is needed.

    With `--wait`, one Spark session stays warm over all steps: confirm from another console, and the writers stand
    still for seconds only.
    """
    from mirror_lib.runbook import CutoverArguments, progress

    with reporting(as_json) as output, _context(config, name) as context:
        files = RunFiles.of(f"cutover-{name}-{uuid.uuid4()}")
        arguments = CutoverArguments(
            config.absolute(), name, context.by, until, wait, files.report, confirm=word, note=note
        )
        code = _run_job(output, arguments.command_line(), name, files, master, context)
        output.note(f"Log of the job: {files.log}")
        done = progress(context.ledger, context.definition)
        _show(output, done)
        _fail_as(files, output, code)


@_app.command()
def confirm(
    name: _NameArgument,
    step: Annotated[Step, typer.Argument(help="freeze: the writers are stopped; approve: everything is agreed on.")],
    config: ConfigOption,
    note: NoteOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say that the writers are stopped (freeze), or agree on the switch (approve), to the process that asks.

    Refused when no process carries the cutover out: `mirror cutover run NAME --confirm STEP` then does both.
    """

    with reporting(as_json) as output, _context(config, name) as context:
        present = machine.progress(context.ledger, context.definition)
        _show(output, present)
        require(present.present, Event.YES)
        if not yes and not confirmed(f"{step.value} of cutover {name}: is it so?"):
            output.note("Nothing was confirmed.")
            output.exit_code = 3
            return
        asked = answer(context.ledger, name, step, yes=True, by=context.by, note=note or "")
        with output.progress("Waiting for the process that asked"):
            await_taken(context.ledger, asked)
        output.exit_code = 0
        output.note(f"{step.value} is confirmed; the cutover goes on where it runs.")


@_app.command()
def status(name: _NameArgument, config: ConfigOption, as_json: JsonOption = False) -> None:
    """Where a cutover is: steps, gates, times. Reads the ledger only. Exit code 3 when a person has to do something."""
    from mirror_lib.runbook import progress

    with reporting(as_json) as output, _context(config, name) as context:
        done = progress(context.ledger, context.definition)
        _show(output, done)
        failed = [
            (attempt.step.value, gate.name, gate.passed, gate.what, "" if gate.passed else gate.action)
            for attempt in done.attempts
            for gate in attempt.gates
        ]
        capped_table(output, "gates", _GATE_COLUMNS, failed)


@_app.command()
def states(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the part of docs/runbooks.md.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the states of a cutover, what each event does in each, and the states of a return after a disaster.

    Checks that each state has a way out.
    """

    with reporting(as_json) as output:
        if markdown and not as_json:
            typer.echo(f"{states_shown.markdown()}\n{disaster_states.markdown()}", nl=False)
            return
        output.table("states", states_shown.COLUMNS, states_shown.table())
        output.table("after_disaster", ("state", "what it is", "what to do"), list(disaster_states.rows()))
        found = states_shown.problems()
        output.document({"problems": found})
        for each in found:
            output.note(f"FAILED {each}")
        output.exit_code = 1 if found else 0
        if not found:
            output.note("passed: every state has a way out, and nobody can answer a cutover that nobody carries out.")


@_app.command(name="list")
def list_(config: ConfigOption, as_json: JsonOption = False) -> None:
    """All cutovers, the newest first."""

    with reporting(as_json) as output, without_lookups(), open_ledger(load(config)) as ledger:
        rows = [
            (
                each.name,
                each.flow,
                each.state,
                each.step,
                each.created_at.isoformat(timespec="seconds"),
                each.created_by,
            )
            for each in ledger.cutovers.newest()
        ]
        capped_table(output, "cutovers", _LIST_COLUMNS, rows)


@_app.command()
def rollback(
    name: _NameArgument,
    config: ConfigOption,
    note: NoteOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take a cutover back, as long as nobody has written to the target. Then start the writers on the source again."""

    with reporting(as_json) as output, _context(config, name) as context:
        if not yes and not confirmed(f"Take cutover {name} back?"):
            output.note("Nothing was done.")
            output.exit_code = 3
            return
        undone = roll_back(context, note=note or "")
        for gate in undone:
            output.note(str(gate))
        output.document({"undone": [gate.to_dict() for gate in undone]})
        output.exit_code = 0 if all(gate.passed for gate in undone) else 1
        if output.exit_code == 0:
            output.note(f"Cutover {name} was taken back: writers and readers may go on on the source.")


@_app.command()
def back(
    name: _NameArgument,
    config: ConfigOption,
    as_name: Annotated[str | None, typer.Option("--as", help="The new cutover's name; default NAME-back.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Define the cutover that brings home what NAME has moved: only what changed since is copied."""

    with reporting(as_json) as output, _context(config, name) as context:
        definition = failback_of(context.config, context.ledger, name, as_name)
        context.definition = definition
        create(context.ledger, definition, by=context.by, context=context)
        output.document({"cutover": definition.to_dict()})
        output.note(f"Cutover {definition.name} is defined. Begin it by: mirror cutover run {definition.name}")


@_app.command()
def after_disaster(
    config: ConfigOption,
    flow: FlowOption,
    topics: Annotated[
        list[str] | None, typer.Option("--topics", help="Java regex for source topics; default: all of the flow.")
    ] = None,
    note: NoteOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done and change nothing.")] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """The source was lost and is there again: let the flow back go on behind what it has.

    Tells, and keeps in the ledger, what never came to the target. The flow copies these topics no more; the flow back
    brings home what was written to the target since. Exit code 3 when a partition needs a person.
    """

    with reporting(as_json) as output:
        file, settings = load_flow_as_it_runs(config, flow)
        patterns = topics or [".*"]
        with output.progress(f"Reading both clusters of {settings.flow}"):
            plan = plan_return(settings, enabled_opposite_of(file, settings), patterns)
        for each in plan.partitions:
            output.note(str(each))
        if plan.staying:
            output.note(plan.staying_text)
        back, done = plan.opposite, False
        if not plan.errors and not dry_run:
            if yes or confirmed(f"Hand these {len(plan.partitions)} partitions over to flow {back.flow}?"):
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
        told = [each.to_dict() for each in plan.partitions]
        todo = do(state, settings.flow)
        output.document({"partitions": told, "staying": list(plan.staying), "done": done, "do": todo})
        output.note(f"{STATES[state].description} {todo}")


@contextmanager
def _context(config: Path, name: str) -> Iterator[CutoverContext]:

    file = load(config)
    with open_ledger(file) as ledger:
        definition = open_cutover(ledger, name)
        last = attempts_of(ledger, name)
        yield CutoverContext(definition=definition, config=file, ledger=ledger, by=person(), last=last)


@contextmanager
def _desk_of(config: Path, definition: CutoverDefinition) -> Iterator[CutoverContext]:

    file = load(config)
    with open_ledger(file) as ledger:
        yield CutoverContext(definition=definition, config=file, ledger=ledger, by=person())


def _run_job(
    output: Output, arguments: list[str], name: str, files: RunFiles, master: str, context: CutoverContext
) -> int:

    job = Job(
        title=f"mirror cutover {name}",
        file=job_file().with_name("cutover.py"),
        arguments=arguments,
        interrupted=f"cutover {name} was interrupted.",
        what_then=f"Nothing is lost: go on by `mirror cutover run {name}`, or take it back by rollback.",
        transforms=any(
            each.transforms for each in context.config.enabled_flows if str(each.flow) == context.definition.flow
        ),
    )
    with (
        output.progress(f"Cutover {name}: starting Spark", total=1) as progress,
        running_job(job, master=master, log=files.log) as child,
    ):
        while (code := child.wait(_POLL_SECONDS)) is None:
            _follow(progress, context.ledger, context)
    return code


def _follow(progress: Progress, ledger: Ledger, context: CutoverContext) -> None:

    try:
        done = machine.progress(ledger, context.definition)
    except MirrorError:
        # Failing to show the progress must not end the run.
        return
    passed, steps = report.passed_steps(done)
    progress.update(passed, total=steps, description=f"Cutover {done.definition.name}: {done.step.value}")


def _show(output: Output, done: CutoverProgress) -> None:

    output.table("time_line", _LINE_COLUMNS, time_line(done))
    output.document(as_data(done))
    output.note(sentence(done))
    output.exit_code = done.exit_code


def _fail_as(files: RunFiles, output: Output, code: int) -> None:
    """Exit with the job's code; a job that failed as a whole has recorded the reason, or has left only its log."""

    if code == 0:
        return
    try:
        told = json.loads(files.report.read_text())
    except (OSError, ValueError):
        raise MirrorError("the job ended without a report.", action=f"Its log tells why: {files.log}") from None
    if "error" in told:
        output.note(f"error: {told['error']['what']} {told['error'].get('action', '')}")
    output.exit_code = int(told["exit_code"])
