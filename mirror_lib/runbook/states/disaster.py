"""The states of the return after a disaster, and what to do in each. Pure.

One table for messages, `mirror cutover states` and the documentation. The return itself is one operation
(`after_disaster`): before it nothing is changed, and an interrupted one is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.topology import FlowId


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
class Stand:
    """The description of a state."""

    description: str
    #: What to do; `{again}`, `{run_back}` and `{away}` are commands.
    do: str


STATES: Mapping[DisasterState, Stand] = {
    DisasterState.SOURCE_AWAY: Stand(
        "The source does not answer (`broker-unreachable`): nothing was changed.",
        "Start it, keep clients away from it, and look: {again}.",
    ),
    DisasterState.PLANNED: Stand(
        "Shown by `--dry-run`, or by the task `look`: nothing was changed.", "Carry it out: {again}."
    ),
    DisasterState.ASKING: Stand(
        "In Airflow: the question `agreed` is open among the required actions.", "Answer it there with Yes or No."
    ),
    DisasterState.NOT_AGREED: Stand(
        "Somebody said No, nobody answered, or a task was cleared and asks with an old text: nothing was changed.",
        "Begin again: {again}, or trigger the DAG again.",
    ),
    DisasterState.CHANGED: Stand(
        "The clusters are not as they were shown any more (`plan-changed`): nothing was changed.",
        "Keep everybody away from the source, look and agree again: {again}, or trigger the DAG again.",
    ),
    DisasterState.FLOW_RUNS: Stand(
        "A run of one of the two flows holds its lock (`run-locked`): nothing was changed.",
        "Pause both flows' DAGs, wait for the run to end, or end it, and repeat: {again}.",
    ),
    DisasterState.REFUSED: Stand(
        "A partition cannot be handed over, and so none was: its error says why.",
        "Follow the error's own words, or leave the topic out by --topics: {again}.",
    ),
    DisasterState.INTERRUPTED: Stand(
        "The process died before the topics were handed over. Positions of the flow back and gaps may be written.",
        "Repeat it: {again}. It writes the same again.",
    ),
    DisasterState.HANDED_OVER: Stand(
        "The flow back brings home what came since; the flow itself copies these topics no more.",
        "Run the flow back: {run_back}.",
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
        f"Delete the topic on the source, set {flow}.enabled = false and {back}.mirror.way.back = false in the file, "
        f"and let the flow back copy it from the beginning: {run_back(flow)} (docs/runbooks.md, 7)."
    )


def do(state: DisasterState, flow: FlowId) -> str:
    """Return what to do in a state."""
    return STATES[state].do.format(again=after_disaster(flow), run_back=run_back(flow))


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each state, its description, and what to do."""
    for state, stand in STATES.items():
        yield state.value, stand.description, do(state, FlowId("A", "B"))


def markdown() -> str:
    """Return the states: part of docs/runbooks.md."""
    lines = ["| state | what it is | what to do |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{state}` | {what} | {todo} |" for state, what, todo in rows())]) + "\n"
