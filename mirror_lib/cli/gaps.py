"""`mirror gaps`: records lost at the source, and their resolution."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from mirror_lib.cli.commands import command_group
from mirror_lib.cli.confirmation import NoteOption, YesOption, is_confirmed, person
from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import capped_table
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output
from mirror_lib.copy.gaps.gaps import apply_decisions, plan_decisions, plan_in_ledger, undecided_gaps
from mirror_lib.copy.gaps.resolutions import IN_LEDGER, Decision, Resolution
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.counted import counted
from mirror_lib.errors import ConfigurationError
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.rows import GapRow
from mirror_lib.planning.flow_clusters import FlowClusters

app = command_group("gaps")

TopicOption = Annotated[
    str | None, typer.Option(help="Source topic of the gaps; to decide, one of --topic, --id and --all is needed.")
]
GapPartitionOption = Annotated[
    int | None, typer.Option("--partition", min=0, help="Only gaps of this partition; with --topic.")
]
IdOption = Annotated[
    str | None, typer.Option("--id", help="Id of a gap, or the first characters of the ids of several.")
]
AllOption = Annotated[bool, typer.Option("--all", help="All gaps of the flow.")]

_COLUMNS = ("id", "topic", "partition", "cause", "from", "to", "since", "found", "state", "decided by", "note")
_ID_SHOWN = 8
_LISTED = 1_000


@app.command("list")
@begin_with(flow_command)
def list_gaps(
    command: FlowCommand,
    only_open: Annotated[bool, typer.Option("--open", help="Only gaps without a resolution.")] = False,
) -> None:
    """List the gaps of a flow, newest first. Exit code 3 if a gap is open."""
    output, name = command.output, str(command.settings.flow)
    with open_ledger(command.file) as ledger:
        waiting = ledger.open_gaps(name)
        found = waiting if only_open else ledger.gaps(name, _LISTED)
    capped_table(output, "gaps", _COLUMNS, [_row(gap) for gap in found])
    for gap in waiting:
        output.note(f"{gap.id[:_ID_SHOWN]} {gap.topic}-{gap.partition}: {gap.detail}")
    if waiting:
        output.note("Resolve gaps with `mirror gaps accept`, `recopy` or `stop`; each first shows what it would do.")
        output.exit_code = 3
    else:
        output.note(f"Flow {name}: no gap needs a decision.")


def _row(gap: GapRow) -> tuple[object, ...]:
    return (
        gap.id,
        gap.topic,
        gap.partition,
        gap.cause,
        gap.first_offset,
        gap.next_offset,
        None if gap.first_time is None else f"{gap.first_time:%Y-%m-%d %H:%M:%SZ}",
        f"{gap.found_at:%Y-%m-%d %H:%M:%SZ}",
        gap.state,
        gap.decided_by,
        gap.note,
    )


def _add_decision(name: str, text: str) -> None:
    """Add a command that decides about gaps."""

    @app.command(name, help=text)
    @begin_with(flow_command)
    def decide(
        command: FlowCommand,
        topic: TopicOption = None,
        partition: GapPartitionOption = None,
        gap_id: IdOption = None,
        every: AllOption = False,
        note: NoteOption = None,
        yes: YesOption = False,
    ) -> None:
        _decide(Decision(name), command, _Choice(topic, partition, gap_id, every), note, yes=yes)


_add_decision(
    "accept", "Accept a gap and continue. What the target then lacks depends on the cause (docs/troubleshooting.md)."
)
_add_decision(
    "recopy", "Copy the source again from its log start offset, appended to the target: consumers see records again."
)


_add_decision("stop", "Stop replicating the partitions until `mirror gaps resume`.")
_add_decision("resume", "Undo a stop: all stopped gaps of the partition are open again and need a new decision.")


class _Choice:
    """The gaps that the operator selects."""

    def __init__(self, topic: str | None, partition: int | None, gap_id: str | None, every: bool) -> None:
        self._topic, self._partition, self._id, self._every = topic, partition, gap_id, every

    def check(self) -> None:
        """Check that exactly one way of selecting is used.

        Raises:
            ConfigurationError: it is not.
        """
        ways = sum((self._topic is not None, self._id is not None, self._every))
        if ways != 1 or (self._partition is not None and self._topic is None):
            raise ConfigurationError(
                "no gaps are selected, or in more than one way.",
                action="Pass either --topic (with or without --partition), or --id, or --all.",
            )

    def of(self, gaps: Sequence[GapRow]) -> tuple[GapRow, ...]:
        """Return the selected gaps."""
        return tuple(gap for gap in gaps if self._means(gap))

    def __str__(self) -> str:
        """The selection, as it follows `gap`."""
        if self._id is not None:
            return f" with an id that starts with {self._id}"
        partition = "" if self._partition is None else f", partition {self._partition},"
        return "" if self._every else f" of topic {self._topic}{partition}"

    def _means(self, gap: GapRow) -> bool:
        if self._id is not None:
            return gap.id.startswith(self._id)
        return self._every or (gap.topic == self._topic and self._partition in (None, gap.partition))


def _decide(decision: Decision, command: FlowCommand, choice: _Choice, note: str | None, *, yes: bool) -> None:
    choice.check()
    output, settings = command.output, command.settings
    name = str(settings.flow)
    with open_ledger(command.file) as ledger:
        known = undecided_gaps(ledger, name, decision)
        gaps = choice.of(known)
        if decision is Decision.RESUME:
            # One stop that stays keeps its whole partition.
            meant = {(gap.topic, gap.partition) for gap in gaps}
            gaps = tuple(gap for gap in known if (gap.topic, gap.partition) in meant)
        if not gaps:
            output.document({"decisions": []})
            output.note(_no_gap_text(decision, name, choice, len(known)))
            return
        run_id = f"decision-{uuid.uuid4()}"
        lock = hold_lock(ledger, flow=name, run_id=run_id, lease_seconds=settings.run_lease_seconds)
        with lock as lease, ExitStack() as stack:
            clusters = None
            if decision in IN_LEDGER:
                planned = plan_in_ledger(decision, gaps)
            else:
                clusters = stack.enter_context(FlowClusters.connect(settings))
                with command.progress():
                    planned = plan_decisions(settings, clusters, ledger, decision, gaps, run_id=run_id)
            _show(output, planned)
            feasible = [each for each in planned if each.error is None]
            output.document({"done": 0})
            question = f"{decision.value.capitalize()} for {counted(len(feasible), 'partition')}?"
            if is_confirmed(output, question, yes=yes, possible=bool(feasible)):
                lease.check()
                apply_decisions(settings, clusters, ledger, feasible, by=person(), note=note)
                output.document({"done": len(feasible)})
                output.note(f"Done for {counted(len(feasible), 'partition')}; the decision is in the ledger.")


def _no_gap_text(decision: Decision, flow: str, choice: _Choice, others: int) -> str:
    state = "stopped" if decision == "resume" else "open"
    rest = f"; {counted(others, 'other gap is', 'other gaps are')} {state}" if others else ""
    return f"Flow {flow}: no gap{choice} is {state}{rest}. `mirror gaps list` shows all gaps. Nothing was changed."


def _show(output: Output, planned: Sequence[Resolution]) -> None:
    output.document({"decisions": [each.to_dict() for each in planned]})
    for each in planned:
        if each.error is None:
            output.note(str(each))
        else:
            output.error(each.error)
            output.exit_code = max(output.exit_code, each.error.exit_code)
