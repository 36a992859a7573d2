"""The state of a cutover in the ledger: who carries it out, which question is open, and which events are possible."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mirror_lib.copy.run_lock import LockHolder, shown_holder
from mirror_lib.errors import ConfigurationError, MirrorError, RunLockedError
from mirror_lib.features.cutover.model import Attempt, CutoverState, Step, StepState
from mirror_lib.features.cutover.order import CONFIRMED_BY, is_released, last_attempts
from mirror_lib.features.cutover.records import attempt_of
from mirror_lib.features.cutover.states.cutover import Event, Known, Refusal, State, after, state_of
from mirror_lib.features.cutover.tables.carriers import DIED, CarrierRow, Carriers, QuestionRow
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.rows import RunLockRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import lock_name

RUN, ROLLBACK = "run", "rollback"
YES, NO = "yes", "no"
_POLL_SECONDS = 0.3


class NotNowError(ConfigurationError):
    """A cutover refuses an event in its present state."""

    reason = "cutover-not-now"
    exit_code = 3


#: Replaces `running`, for a step whose process died.
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Situation:
    """A cutover at one moment."""

    name: str
    state: State
    #: The live process that carries it out, or rolls it back.
    carrier: CarrierRow | None
    #: The question of this process; answered by yes if it has not taken the answer yet.
    question: QuestionRow | None
    #: The last process that carried it out, if it died.
    died: CarrierRow | None = None
    #: A step was started and has not ended.
    in_step: bool = False

    def shown_step_state(self, state: str) -> str:
        """Return the displayed state of a step: without its process none runs, and none that died waits any more."""
        return INTERRUPTED if self._is_interrupted(state) else state

    def shown_state(self, recorded: str) -> str:
        """Return the displayed state of the cutover: it is not interrupted if its last process ended between steps."""
        if not self.state.is_unattended:
            return recorded
        if recorded == CutoverState.RUNNING and not self.in_step and self.died is None:
            return self.state.value
        return INTERRUPTED if self._is_interrupted(recorded) else recorded

    def _is_interrupted(self, state: str) -> bool:
        # A process that ended in good order may leave a question that `mirror cutover run --confirm` answers.
        is_open = state == StepState.RUNNING or (state == StepState.WAITING and self.died is not None)
        return self.state.is_unattended and is_open

    @property
    def who(self) -> str:
        """Who acts, for operators."""
        if self.state.has_ended:
            return "No action needed."
        if self.carrier is not None:
            verb = "Rolled back" if self.carrier.kind == ROLLBACK else "Run"
            return (
                f"{verb} by {self.carrier.by} ({shown_holder(self.carrier.holder)}) since "
                f"{self.carrier.since:%Y-%m-%dT%H:%M:%SZ}."
            )
        waits = ", and the writers are stopped" if self.state.writers_wait else ""
        ended = "" if self.died is None else f" The process of {self.died.by} died."
        return f"No process runs it{waits}.{ended}"


def situation_of(ledger: Ledger, name: str, *, apart_from: str | None = None) -> Situation:
    """Return the state of a cutover.

    Args:
        apart_from: the lock of this run does not count: its own process checks what it may do.

    Raises:
        ConfigurationError: there is no such cutover.
    """
    # The lock first: a process records its end before it releases the lock.
    lock = _live_lock(ledger.lock_holder(lock_name(name)))
    if lock is not None and lock.run_id == apart_from:
        lock = None
    row = Cutovers(ledger).find(name)
    if row is None:
        raise ConfigurationError(f"there is no cutover {name!r}.", action="See `mirror cutover list`.")
    attempts = [attempt_of(each) for each in Cutovers(ledger).steps(name)]
    return _situation(row, attempts, Carriers(ledger).of(name), Carriers(ledger).questions(name), lock)


def newest_situations(ledger: Ledger) -> list[tuple[CutoverRow, Situation]]:
    """Return the newest cutovers with their states, newest first; with a constant number of queries."""
    # The locks first, as above.
    held = ledger.lock_holders()
    rows = Cutovers(ledger).newest()
    names = [row.name for row in rows]
    steps = Cutovers(ledger).steps_of(names)
    carriers, questions = Carriers(ledger).of_all(names), Carriers(ledger).questions_of_all(names)
    return [
        (
            row,
            _situation(
                row,
                [attempt_of(each) for each in steps[row.name]],
                carriers[row.name],
                questions[row.name],
                _live_lock(held.get(lock_name(row.name))),
            ),
        )
        for row in rows
    ]


def _situation(
    row: CutoverRow,
    attempts: Sequence[Attempt],
    carriers: Sequence[CarrierRow],
    questions: Sequence[QuestionRow],
    lock: RunLockRow | None,
) -> Situation:
    carrier = _carrier_of(row, carriers, lock)
    question = next(
        (
            each
            for each in questions
            if carrier is not None and each.carrier == carrier.id and each.ended_at is None and each.answer != NO
        ),
        None,
    )
    known = Known(
        recorded=CutoverState(row.state),
        begun=bool(attempts or carriers),
        frozen=_is_frozen(attempts, questions),
        released=is_released(attempts),
        carried=carrier is not None and carrier.kind == RUN,
        rolled_back=carrier is not None and carrier.kind == ROLLBACK,
        question=None if question is None else Step(question.step),
        answered=question is not None and question.answer == YES,
    )
    last = carriers[-1] if carriers else None
    died = last if carrier is None and last is not None and last.ended_as in (None, DIED) else None
    in_step = any(each.state is StepState.RUNNING for each in last_attempts(attempts).values())
    return Situation(row.name, state_of(known), carrier, question, died, in_step)


def _live_lock(lock: RunLockRow | None) -> RunLockRow | None:
    holder = None if lock is None else LockHolder.parse(lock.holder)
    return None if holder is not None and holder.known_dead else lock


def _carrier_of(row: CutoverRow, carriers: Sequence[CarrierRow], lock: RunLockRow | None) -> CarrierRow | None:
    if lock is None:
        return None
    for each in carriers:
        if each.id == lock.run_id:
            # It records its end before it releases the lock.
            return each if each.ended_at is None else None
    # It has the lock and has not recorded more yet, or belongs to an earlier version.
    kind = ROLLBACK if lock.run_id.startswith(ROLLBACK) else RUN
    return CarrierRow(
        cutover=row.name, id=lock.run_id, kind=kind, by=row.created_by, holder=lock.holder, since=lock.acquired_at
    )


def _is_frozen(attempts: Sequence[Attempt], questions: Sequence[QuestionRow]) -> bool:
    """Return True if the operator confirmed that the writers are stopped, and that was not revoked since."""
    last = last_attempts(attempts).get(Step.FREEZE)
    if last is None or last.state is StepState.UNDONE:
        return False
    is_confirmed = any(
        each.step == Step.FREEZE and each.attempt == last.number and each.answer == YES for each in questions
    )
    return last.state is StepState.PASSED or CONFIRMED_BY in last.facts or is_confirmed


def refusal_error(present: Situation, refusal: Refusal) -> MirrorError:
    """Return the error for a refused event."""
    what = f"cutover {present.name} {refusal.reason}."
    if present.carrier is not None:
        what = f"{what} {present.who}"
    if present.carrier is not None and refusal.way is Event.KILL:
        return RunLockedError(what, action=refusal.do.format(name=present.name))
    return NotNowError(what, action=refusal.do.format(name=present.name))


def require(present: Situation, event: Event) -> State:
    """Return the state after an event.

    Raises:
        NotNowError: the event is refused.
        RunLockedError: it is refused as long as a process carries the cutover out.
    """
    then = after(present.state, event)
    if isinstance(then, Refusal):
        raise refusal_error(present, then)
    return then


def answer(ledger: Ledger, name: str, step: Step, *, yes: bool, by: str, note: str = "") -> QuestionRow:
    """Answer the open question of a cutover and return it. The process that asks takes the answer.

    Raises:
        NotNowError: no process carries the cutover out, or it does not ask for this step.
    """
    while True:
        present = situation_of(ledger, name)
        require(present, Event.YES if yes else Event.NO)
        question = present.question
        assert question is not None
        if question.step != step:
            raise NotNowError(
                f"cutover {name} does not wait for {step.value}: it waits for {question.step}.",
                action=f"Answer that question: `mirror cutover confirm {name} {question.step}`.",
            )
        if Carriers(ledger).answer(question, YES if yes else NO, by=by, note=note):
            audit_word(ledger, name, step, yes=yes, by=by, note=note)
            return question


def audit_word(ledger: Ledger, name: str, step: Step, *, yes: bool, by: str, note: str) -> None:
    """Record an operator's answer in the audit log, with the gates that were shown."""
    row = Cutovers(ledger).find(name)
    assert row is not None
    attempt = last_attempts([attempt_of(each) for each in Cutovers(ledger).steps(name)]).get(step)
    gates = [] if attempt is None else [gate.to_dict() for gate in attempt.gates]
    ledger.audits.note(
        by=by,
        action=f"cutover-{step.value}" if yes else f"cutover-{step.value}-refused",
        subject=name,
        flow=row.flow,
        detail={CONFIRMED_BY if yes else "refused_by": by, "note": note, "gates": gates},
    )


def await_taken(ledger: Ledger, question: QuestionRow) -> None:
    """Wait until the process that asked has taken the answer.

    Raises:
        NotNowError: that process has ended before: nothing acts on the answer.
    """
    while True:
        present = situation_of(ledger, question.cutover)
        row = Carriers(ledger).question(question.cutover, question.step, question.attempt)
        if row is None or row.ended_as == "taken":
            return
        if row.ended_at is not None or present.carrier is None or present.carrier.id != question.carrier:
            raise refusal_error(
                present,
                Refusal(
                    "lost the process that asked, before it took the answer",
                    "Trigger it again: `mirror cutover run {name}`, or the DAG with this name.",
                ),
            )
        time.sleep(_POLL_SECONDS)
