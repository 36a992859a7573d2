"""The states of a cutover, the events, and the state after each event. Pure.

One table for the program itself, Airflow's tasks, the command line, the page and the documentation: all call `after`. A
state says who acts (nobody, a process that carries the cutover out, or one that rolls it back), whether a question is
open, and whether the writers wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.features.cutover.model import CutoverState, Step


class State(StrEnum):
    """The state of a cutover."""

    DEFINED = "defined"
    PREPARING = "preparing"
    ASKING_FREEZE = "asking-freeze"
    FREEZE_ANSWERED = "freeze-answered"
    STOPPED = "stopped"
    CUTTING = "cutting"
    ASKING_APPROVE = "asking-approve"
    APPROVE_ANSWERED = "approve-answered"
    STOPPED_FROZEN = "stopped-frozen"
    WATCHING = "watching"
    STOPPED_RELEASED = "stopped-released"
    ROLLING_BACK = "rolling-back"
    ROLLING_BACK_FROZEN = "rolling-back-frozen"
    ROLLING_BACK_RELEASED = "rolling-back-released"
    FINISHED = "finished"
    ROLLED_BACK = "rolled-back"

    @property
    def is_carried(self) -> bool:
        """True if a process carries the cutover out."""
        return self in _CARRIED

    @property
    def is_unattended(self) -> bool:
        """True if no process acts, and something is left to do."""
        return self in _UNATTENDED

    @property
    def has_ended(self) -> bool:
        """True if nothing is left to do."""
        return self in (State.FINISHED, State.ROLLED_BACK)

    @property
    def writers_wait(self) -> bool:
        """True if the writers have been stopped and may not write to the target yet."""
        return self in _WRITERS_WAIT

    @property
    def question(self) -> Step | None:
        """The step whose question can be answered now."""
        return {State.ASKING_FREEZE: Step.FREEZE, State.ASKING_APPROVE: Step.APPROVE}.get(self)


class Event(StrEnum):
    """Events of a cutover."""

    #: `mirror cutover run`, or the DAG with the cutover's name.
    TRIGGER = "trigger"
    #: `mirror cutover run --confirm STEP`: the confirmation is given to the process that acts on it.
    TRIGGER_WITH_CONFIRMATION = "trigger and confirm"
    YES = "yes"
    NO = "no"
    ROLL_BACK = "roll back"
    #: `mirror cutover back`: a new cutover in the other direction.
    BRING_BACK = "fail back"
    #: In Airflow, of the task that carries it out, or rolls it back.
    CLEAR = "clear"
    MARK = "mark"
    #: Of Airflow. Processes of its tasks are killed.
    RESTART = "Airflow restart"
    KILL = "kill"
    TIME_OUT = "time-out"
    ASKS = "asks"
    TAKES = "takes the answer"
    #: A writer was found, or the process that received the confirmation has ended: it has to be given again.
    WORD_LAPSES = "answer lapses"
    RELEASES = "releases"
    FINISHES = "finishes"
    #: The process ends: a gate does not hold, the answer is no, the last requested step is done, an error.
    LEAVES = "leaves"
    UNDOES = "undone"


#: Events from operators, Airflow and the environment; the others come from the cutover's own process.
OUTSIDE = (
    Event.TRIGGER,
    Event.TRIGGER_WITH_CONFIRMATION,
    Event.YES,
    Event.NO,
    Event.ROLL_BACK,
    Event.BRING_BACK,
    Event.CLEAR,
    Event.MARK,
    Event.RESTART,
    Event.KILL,
    Event.TIME_OUT,
)
INSIDE = tuple(event for event in Event if event not in OUTSIDE)
#: Events that an operator can choose.
CHOICES = (Event.TRIGGER, Event.YES, Event.NO, Event.ROLL_BACK, Event.BRING_BACK)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that is refused: the state stays."""

    #: Follows `cutover NAME`.
    reason: str
    #: What to do instead, with `{name}`.
    do: str
    #: The event that `do` names; None in a state that has ended.
    way: Event | None = None


_NOBODY = "has no running process"
_AGAIN = "Trigger it again: `mirror cutover run {name}`, or the DAG with this name."
_BACK = "Fail back with `mirror cutover back {name}`."
_ANOTHER = "Start a new one with another name."

_WRITERS_WAIT = frozenset(
    {
        State.CUTTING,
        State.ASKING_APPROVE,
        State.APPROVE_ANSWERED,
        State.FREEZE_ANSWERED,
        State.STOPPED_FROZEN,
        State.ROLLING_BACK_FROZEN,
    }
)


@dataclass(frozen=True, slots=True)
class _Phase:
    """The states of one phase: no process acts, steps are run, a question is open, it is rolled back."""

    unattended: State
    works: State
    rolls_back: State
    asks: State | None = None
    answered: State | None = None


_BEFORE = _Phase(
    State.STOPPED, State.PREPARING, State.ROLLING_BACK, asks=State.ASKING_FREEZE, answered=State.FREEZE_ANSWERED
)
_FROZEN = _Phase(
    State.STOPPED_FROZEN,
    State.CUTTING,
    State.ROLLING_BACK_FROZEN,
    asks=State.ASKING_APPROVE,
    answered=State.APPROVE_ANSWERED,
)
_RELEASED = _Phase(State.STOPPED_RELEASED, State.WATCHING, State.ROLLING_BACK_RELEASED)
_PHASES = (_BEFORE, _FROZEN, _RELEASED)
_UNATTENDED = frozenset({State.DEFINED, *(phase.unattended for phase in _PHASES)})
_CARRIED = frozenset(
    state for phase in _PHASES for state in (phase.works, phase.asks, phase.answered) if state is not None
)

_Row = Mapping[Event, State | Refusal]


def _same(state: State, *events: Event) -> dict[Event, State | Refusal]:
    return dict.fromkeys(events, state)


def _refuse(refusal: Refusal, *events: Event) -> dict[Event, State | Refusal]:
    return dict.fromkeys(events, refusal)


def _unattended_row(state: State, phase: _Phase) -> _Row:
    nobody = Refusal(f"{_NOBODY}: an answer would have no effect", _AGAIN, Event.TRIGGER)
    no_process = Refusal(_NOBODY, _AGAIN, Event.TRIGGER)
    not_moved = Refusal(
        "has not moved anything yet", "Roll it back with `mirror cutover rollback {name}`.", Event.ROLL_BACK
    )
    row: dict[Event, State | Refusal] = {
        **_same(phase.works, Event.TRIGGER, Event.TRIGGER_WITH_CONFIRMATION, Event.CLEAR),
        **_refuse(nobody, Event.YES, Event.NO),
        Event.ROLL_BACK: phase.rolls_back,
        Event.BRING_BACK: state if phase is _RELEASED else not_moved,
        **_same(state, Event.MARK, Event.RESTART, Event.KILL, Event.TIME_OUT),
        **_refuse(no_process, *INSIDE),
    }
    if state is State.DEFINED or phase is _RELEASED:
        row[Event.TRIGGER_WITH_CONFIRMATION] = Refusal("has no open question", _AGAIN, Event.TRIGGER)
    return row


def _attended_row(state: State, phase: _Phase) -> dict[Event, State | Refusal]:
    """Return the transitions common to all states in which a process carries a cutover out."""
    taken = Refusal(
        "is already running",
        "Wait until that process waits for an answer or ends, or end it (Ctrl-C, or mark its task in Airflow).",
        Event.KILL,
    )
    busy = Refusal(
        "is in the middle of a step",
        "Wait until it waits for an answer or ends, or end its process (Ctrl-C, or mark its task in Airflow); then "
        "roll it "
        "back.",
        Event.KILL,
    )
    not_moved = Refusal(
        "has not moved anything yet", "Wait until it waits for an answer or ends; then roll it back.", Event.KILL
    )
    not_due = Refusal("cannot do that in this state", "Wait until it waits for an answer or ends.", Event.LEAVES)
    return {
        **_refuse(not_due, *INSIDE),
        **_refuse(taken, Event.TRIGGER, Event.TRIGGER_WITH_CONFIRMATION),
        Event.ROLL_BACK: busy,
        Event.BRING_BACK: state if phase is _RELEASED else not_moved,
        Event.CLEAR: phase.works,
        **_same(phase.unattended, Event.MARK, Event.KILL, Event.LEAVES),
        **_same(state, Event.RESTART, Event.TIME_OUT),
    }


def _works(phase: _Phase) -> _Row:
    state = phase.works
    row = _attended_row(state, phase)
    asks_nothing = Refusal("has no open question now", "Wait until it waits for an answer or ends.", Event.LEAVES)
    row |= _refuse(asks_nothing, Event.YES, Event.NO)
    if phase.asks is not None:
        row[Event.ASKS] = phase.asks
    if phase is _FROZEN:
        row[Event.WORD_LAPSES], row[Event.RELEASES] = _BEFORE.works, _RELEASED.works
    if phase is _RELEASED:
        row[Event.FINISHES] = State.FINISHED
    return row


def _asks(state: State, phase: _Phase) -> _Row:
    answered = phase.answered
    assert answered is not None
    open_question = Refusal("is already running, and waits for an answer", "Answer its question.", Event.YES)
    return _attended_row(state, phase) | {
        **_refuse(open_question, Event.TRIGGER, Event.TRIGGER_WITH_CONFIRMATION),
        Event.YES: answered,
        # The process ends. A rollback stops it in the same way.
        Event.NO: phase.works,
        Event.ROLL_BACK: phase.rolls_back,
        Event.TIME_OUT: phase.unattended,
    }


def _answered_row(state: State, phase: _Phase) -> _Row:
    again = Refusal("has already been answered", "Wait until its process has taken the answer.", Event.TAKES)
    # A yes that was not taken yet confirms all the same that the writers are stopped.
    return _attended_row(state, phase) | {
        **_refuse(again, Event.YES, Event.NO),
        Event.TAKES: _FROZEN.works,
        **_same(_FROZEN.unattended, Event.MARK, Event.KILL, Event.LEAVES),
        Event.CLEAR: _FROZEN.works,
    }


def _rolls_back(phase: _Phase) -> _Row:
    state = phase.rolls_back
    underway = Refusal("is being rolled back", "Wait until the rollback has ended, or end its process.", Event.KILL)
    return {
        **_refuse(underway, *(event for event in Event if event not in (Event.CLEAR, Event.UNDOES))),
        **_same(state, Event.CLEAR, Event.RESTART, Event.TIME_OUT),
        **_same(phase.unattended, Event.MARK, Event.KILL, Event.LEAVES),
        Event.UNDOES: State.ROLLED_BACK,
    }


def _end_row(state: State) -> dict[Event, State | Refusal]:
    over = Refusal(f"is already {state.value}", _ANOTHER)
    return {
        **_refuse(over, *Event),
        **_same(state, Event.MARK, Event.RESTART, Event.KILL, Event.TIME_OUT),
    }


_TABLE: Mapping[State, _Row] = {
    State.DEFINED: _unattended_row(State.DEFINED, _BEFORE),
    **{phase.unattended: _unattended_row(phase.unattended, phase) for phase in _PHASES},
    **{phase.works: _works(phase) for phase in _PHASES},
    **{phase.asks: _asks(phase.asks, phase) for phase in _PHASES if phase.asks is not None},
    **{phase.answered: _answered_row(phase.answered, phase) for phase in _PHASES if phase.answered is not None},
    **{phase.rolls_back: _rolls_back(phase) for phase in _PHASES},
    State.FINISHED: _end_row(State.FINISHED)
    | {
        Event.ROLL_BACK: Refusal("is finished: it can no longer be rolled back", _BACK),
        Event.BRING_BACK: State.FINISHED,
    },
    State.ROLLED_BACK: _end_row(State.ROLLED_BACK)
    | {Event.BRING_BACK: Refusal("was rolled back: nothing was moved", _ANOTHER)},
}


def after(state: State, event: Event) -> State | Refusal:
    """Return the state after an event, or why the event is refused."""
    return _TABLE[state][event]


def choices(state: State) -> tuple[Event, ...]:
    """Return what an operator can do in a state."""
    return tuple(event for event in CHOICES if isinstance(after(state, event), State))


@dataclass(frozen=True, slots=True)
class Known:
    """The facts of the ledger that determine the state of a cutover."""

    recorded: CutoverState
    #: True if any process has ever begun it.
    begun: bool
    #: The operator has confirmed that the writers are stopped, and that was not revoked.
    frozen: bool
    #: The first grant to write to the target may have been created.
    released: bool
    #: A live process carries it out, or rolls it back.
    carried: bool
    rolled_back: bool
    #: The open question of this process, or one answered by a yes that it has not taken yet.
    question: Step | None = None
    answered: bool = False


def state_of(known: Known) -> State:
    """Return the state of a cutover."""
    if known.recorded.has_ended:
        return State.FINISHED if known.recorded is CutoverState.FINISHED else State.ROLLED_BACK
    phase = _RELEASED if known.released else _FROZEN if known.frozen else _BEFORE
    if known.rolled_back:
        return phase.rolls_back
    if known.carried:
        if known.question is Step.FREEZE:
            return State.FREEZE_ANSWERED if known.answered else State.ASKING_FREEZE
        if known.question is Step.APPROVE:
            return State.APPROVE_ANSWERED if known.answered else State.ASKING_APPROVE
        return phase.works
    return State.DEFINED if phase is _BEFORE and not known.begun else phase.unattended


#: For operators; `{writers}` is never needed, since the state says it.
DESCRIPTIONS: Mapping[State, str] = {
    State.DEFINED: "Not started.",
    State.PREPARING: "A process runs the steps before the freeze; clients still work.",
    State.ASKING_FREEZE: "A process waits for the confirmation that the writers are stopped.",
    State.FREEZE_ANSWERED: "Confirmed; the process takes the answer shortly.",
    State.STOPPED: "No process runs it; the writers may write to the source.",
    State.CUTTING: "The writers are stopped; a process drains, verifies and switches.",
    State.ASKING_APPROVE: "The writers are stopped; a process waits for the approval.",
    State.APPROVE_ANSWERED: "Approved; the process takes the answer shortly.",
    State.STOPPED_FROZEN: "**No process runs it, and the writers are stopped.**",
    State.WATCHING: "Writers may write to the target; a process releases grants and waits for clients.",
    State.STOPPED_RELEASED: "No process runs it; writers may write to the target.",
    State.ROLLING_BACK: "A process rolls it back; the writers were not stopped.",
    State.ROLLING_BACK_FROZEN: "A process rolls it back; the writers are stopped.",
    State.ROLLING_BACK_RELEASED: "A process rolls it back after the release.",
    State.FINISHED: "Ended: all clients have moved.",
    State.ROLLED_BACK: "Ended: nothing has moved.",
}


def rows(events: tuple[Event, ...] = tuple(Event)) -> Iterator[tuple[State, Event, State | Refusal]]:
    """Yield each cell of the table."""
    for state in State:
        for event in events:
            yield state, event, after(state, event)
