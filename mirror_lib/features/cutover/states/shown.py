"""The states of a cutover as a table and a diagram, and their invariants. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mirror_lib.features.cutover.states.cutover import (
    DESCRIPTIONS,
    INSIDE,
    OUTSIDE,
    Event,
    Refusal,
    State,
    after,
    choices,
    rows,
)

#: Events in the diagram. Killing, clearing and marking are only in the table.
_DRAWN = (
    Event.TRIGGER,
    Event.YES,
    Event.ROLL_BACK,
    Event.TIME_OUT,
    Event.KILL,
    *INSIDE,
)
COLUMNS = ("state", *(event.value for event in Event))
_REFUSED, _STAYS = "refused", "="


def table() -> list[tuple[str, ...]]:
    """Return a row for each state with the result of each event; `=` if the state stays."""
    return [(state.value, *(_cell(state, event) for event in Event)) for state in State]


def _cell(state: State, event: Event) -> str:
    then = after(state, event)
    if isinstance(then, Refusal):
        return _REFUSED
    return _STAYS if then is state else then.value


def problems() -> list[str]:
    """Return violated invariants, such as a state without a way out, or writers that wait while nothing can act."""
    return [*_without_a_way_out(), *_bad_refusals(), *_answers_to_nobody(), *_stuck_states()]


def _without_a_way_out() -> Iterator[str]:
    for state in State:
        if state.is_unattended and not any(isinstance(after(state, event), State) for event in choices(state)):
            yield f"{state.value}: an operator can do nothing"


def _bad_refusals() -> Iterator[str]:
    for state, event, then in rows():
        if isinstance(then, State):
            continue
        if not (then.reason and then.do):
            yield f"{state.value}, {event.value}: a refusal without reason or what to do"
        if then.way is None:
            if not state.has_ended:
                yield f"{state.value}, {event.value}: a refusal that leads nowhere"
        elif not isinstance(after(state, then.way), State):
            yield f"{state.value}, {event.value}: what the refusal names is refused too"


def _answers_to_nobody() -> Iterator[str]:
    for state, event, then in rows((Event.YES, Event.NO)):
        if isinstance(then, State) and not then.is_carried:
            yield f"{state.value}, {event.value}: answered, and nobody acts on it"
    for state in State:
        if (state.question is not None) != isinstance(after(state, Event.YES), State):
            yield f"{state.value}: it asks exactly where it can be answered, or should"


def _stuck_states() -> Iterator[str]:
    """Yield states from which no end can be reached."""
    for state in State:
        seen, ahead = {state}, [state]
        while ahead:
            here = ahead.pop()
            for event in Event:
                then = after(here, event)
                if isinstance(then, State) and then not in seen:
                    seen.add(then)
                    ahead.append(then)
        if not any(each.has_ended for each in seen):
            yield f"{state.value}: it can never end"


def markdown() -> str:
    """Return the diagram, the states, the table, and the texts of refusals: part of docs/runbooks.md."""
    return "\n".join([*_draw(), "", *_state_table(), "", *_grid(), "", *_refusals()]) + "\n"


def _draw() -> Iterator[str]:
    arrows: dict[tuple[State, State], list[str]] = {}
    for state, event, then in rows(_DRAWN):
        if isinstance(then, State) and then is not state:
            arrows.setdefault((state, then), []).append(event.value)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {_node(State.DEFINED)}"
    for (state, then), events in arrows.items():
        yield f"    {_node(state)} --> {_node(then)}: {', '.join(events)}"
    for state in State:
        if state.has_ended:
            yield f"    {_node(state)} --> [*]"
    yield "```"


def _node(state: State) -> str:
    return state.value.replace("-", "_")


def _state_table() -> Iterator[str]:
    yield "| State | Meaning | Possible actions |"
    yield "|---|---|---|"
    for state in State:
        can = ", ".join(event.value for event in choices(state)) or ("" if state.has_ended else "wait")
        yield f"| `{state.value}` | {DESCRIPTIONS[state]} | {can} |"


def _grid() -> Iterator[str]:
    yield f"| state | {' | '.join(event.value for event in OUTSIDE)} |"
    yield "|---" * (len(OUTSIDE) + 1) + "|"
    for state in State:
        yield f"| `{state.value}` | {' | '.join(_cell(state, event) for event in OUTSIDE)} |"


def _refusals() -> Iterator[str]:
    cells_by_refusal: dict[tuple[str, str], list[tuple[State, Event]]] = {}
    for state, event, then in rows(OUTSIDE):
        if isinstance(then, Refusal):
            cells_by_refusal.setdefault((then.reason, then.do), []).append((state, event))
    yield "| Refused, because the cutover | What to do | States | Events |"
    yield "|---|---|---|---|"
    for (reason, do), cells in cells_by_refusal.items():
        states = ", ".join(dict.fromkeys(f"`{state.value}`" for state, _ in cells))
        events = ", ".join(dict.fromkeys(event.value for _, event in cells))
        yield f"| {reason} | {do.format(name='NAME')} | {states} | {events} |"
