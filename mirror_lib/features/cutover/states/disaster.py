"""The states of the return after a disaster, and what to do in each. Pure.

One table for messages, `mirror cutover states` and the documentation. The return itself is one operation
(`after_disaster`): before it nothing is changed, and an interrupted one is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.topology.names import FlowId


class DisasterState(StrEnum):
    """The state of the return of some topics."""

    SOURCE_AWAY = "source-away"
    PLANNED = "planned"
    ASKING = "asking"
    NOT_AGREED = "not-agreed"
    CHANGED = "changed"
    FLOW_RUNS = "flow-runs"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    HANDED_OVER = "handed-over"


@dataclass(frozen=True, slots=True)
class StateText:
    """The description of a state."""

    description: str
    #: What to do; `{again}`, `{run_back}` and `{away}` are commands.
    do: str


STATES: Mapping[DisasterState, StateText] = {
    DisasterState.SOURCE_AWAY: StateText(
        "The source does not respond (`broker-unreachable`); nothing was changed.",
        "Start the source, keep clients stopped there, and repeat: {again}.",
    ),
    DisasterState.PLANNED: StateText(
        "The plan was shown by `--dry-run`, or by the task `look`; nothing was changed.", "Apply it: {again}."
    ),
    DisasterState.ASKING: StateText(
        "In Airflow, the task `agreed` waits for an answer (required actions).", "Answer it there with Yes or No."
    ),
    DisasterState.NOT_AGREED: StateText(
        "The answer was No, there was no answer, or a task was cleared and shows an old text; nothing was changed.",
        "Start again: {again}, or trigger the DAG again.",
    ),
    DisasterState.CHANGED: StateText(
        "The clusters have changed since the plan was shown (`plan-changed`); nothing was changed.",
        "Keep all clients stopped on the source, check and approve the new plan: {again}, or trigger the DAG again.",
    ),
    DisasterState.FLOW_RUNS: StateText(
        "A run of one of the two flows holds its lock (`run-locked`); nothing was changed.",
        "Pause the DAGs of both flows, wait for the run to end, or end it, then repeat: {again}.",
    ),
    DisasterState.REFUSED: StateText(
        "A partition cannot be handed over, so none was; the error of the partition shows the cause.",
        "Follow the action of the error, or exclude the topic with --topics: {again}.",
    ),
    DisasterState.INTERRUPTED: StateText(
        "The process died before the topics were handed over. Gaps and positions of the failback flow may be stored.",
        "Repeat: {again}. It stores the same values again.",
    ),
    DisasterState.HANDED_OVER: StateText(
        "The failback flow copies newer records back; the flow itself no longer copies these topics.",
        "Run the failback flow: {run_back}.",
    ),
}


def after_disaster(flow: FlowId) -> str:
    """Return the command that carries the return out, as messages name it."""
    return f"`mirror cutover after-disaster --flow '{flow}'`"


def run_back(flow: FlowId) -> str:
    """Return the command that copies back."""
    return f"`mirror run --flow '{flow.opposite}'`"


def copy_all_back(flow: FlowId) -> str:
    """Return what to do if the failback flow cannot continue at the source's end."""
    back = flow.opposite
    return (
        f"Delete the topic on the source, set {flow}.enabled = false and {back}.mirror.failback = false in the file, "
        f"and let flow {back} copy it from the beginning: {run_back(flow)} (docs/runbooks.md, 7)."
    )


def do(state: DisasterState, flow: FlowId) -> str:
    """Return what to do in a state."""
    return STATES[state].do.format(again=after_disaster(flow), run_back=run_back(flow))


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each state, its description, and what to do."""
    for state, text in STATES.items():
        yield state.value, text.description, do(state, FlowId("A", "B"))


def markdown() -> str:
    """Return the states: part of docs/runbooks.md."""
    lines = ["| State | Meaning | What to do |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{state}` | {what} | {todo} |" for state, what, todo in rows())]) + "\n"
