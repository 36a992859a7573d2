"""Run a cutover step by step: resumable at any step, never past a gate that does not hold.

The ledger keeps every attempt. When a cutover is resumed, the results of passed steps are checked again on the live
clusters: a step whose gates no longer hold is undone and run again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from mirror_lib.copy.run_lock import RunLease, hold_lock
from mirror_lib.errors import (
    RETRIABLE_REASONS,
    ConfigurationError,
    LedgerError,
    MirrorError,
    RunDiedError,
    RunLockedError,
    attributes_of,
)
from mirror_lib.features.cutover import acl_fence, handover
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.model import Attempt, CutoverDefinition, CutoverState, Gate, Step, StepState
from mirror_lib.features.cutover.order import (
    CONFIRMED,
    CONFIRMED_BY,
    LASTING_FACTS,
    REFUSED_BY,
    STEPS,
    has_passed,
    is_released,
)
from mirror_lib.features.cutover.outcome import Outcome
from mirror_lib.features.cutover.records import attempt_of, attempts_of, step_row
from mirror_lib.features.cutover.states.cutover import Event, Refusal, after
from mirror_lib.features.cutover.states.situation import (
    NO,
    RUN,
    NotNowError,
    Situation,
    answer,
    refusal_error,
    require,
    situation_of,
)
from mirror_lib.features.cutover.steps import before as steps_before
from mirror_lib.features.cutover.steps import cut as steps_cut
from mirror_lib.features.cutover.steps import switch as steps_over
from mirror_lib.features.cutover.tables.carriers import CarrierRow, Carriers, QuestionRow
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import lock_name

_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.3
_AGAIN = "Trigger the cutover again."
#: Seconds between two rounds while the operator stops the writers: the lag stays small, with few runs in the ledger.
_FOLLOW_SECONDS = 5.0
#: These steps may be repeated any number of times until the writers are stopped.
_REPEATABLE = frozenset({Step.INVENTORY, Step.PREFLIGHT, Step.REHEARSE})
_LEASE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class StepFunctions:
    """The functions of the steps."""

    work: Mapping[Step, Callable[[CutoverContext], Outcome]]
    #: What must hold before the operator is asked.
    before_asking: Mapping[Step, Callable[[CutoverContext], Outcome]]
    #: Checked again when a cutover is resumed, as long as clients may not write to the target.
    holds: Mapping[Step, Callable[[CutoverContext], tuple[Gate, ...]]]
    #: Repeated while the operator stops the writers.
    while_waiting: Callable[[CutoverContext], None]


STEP_FUNCTIONS = StepFunctions(
    work={
        Step.INVENTORY: steps_before.inventory,
        Step.PREFLIGHT: steps_before.preflight,
        Step.REHEARSE: steps_before.rehearse,
        Step.FREEZE: steps_cut.freeze,
        Step.DRAIN: steps_cut.drain,
        Step.VERIFY: steps_cut.verify,
        Step.TRANSLATE: steps_over.translate,
        Step.APPROVE: steps_over.approve,
        Step.SWITCH: steps_over.switch,
        Step.RELEASE: steps_over.release,
        Step.WATCH: steps_over.watch,
        Step.FINISH: steps_over.finish,
    },
    before_asking={Step.FREEZE: steps_cut.before_freeze, Step.APPROVE: steps_over.before_approval},
    holds={
        Step.INVENTORY: steps_before.inventory_holds,
        Step.FREEZE: steps_cut.freeze_holds,
        Step.DRAIN: steps_cut.cut_holds,
    },
    while_waiting=steps_cut.while_waiting,
)


@dataclass(frozen=True, slots=True)
class StepConfirmation:
    """A confirmation that is given at the start of the process that acts on it."""

    step: Step
    by: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a cutover."""

    definition: CutoverDefinition
    state: CutoverState
    #: The step that is running, waiting or failed, or the last one.
    step: Step
    attempts: tuple[Attempt, ...]
    #: Who acts now, and which events are possible.
    present: Situation

    @property
    def exit_code(self) -> int:
        """0 if it continued or has ended; 1 if the step may pass when it is repeated; 3 if the operator has to act."""
        needs_somebody = self.state in (CutoverState.FAILED, CutoverState.WAITING) or self.present.died is not None
        if not needs_somebody:
            return 0
        error = self.attempts[-1].error if self.attempts and self.state is CutoverState.FAILED else None
        may_pass = error is not None and error.get("reason") in RETRIABLE_REASONS and self.present.died is None
        return 1 if may_pass else 3


def create(ledger: Ledger, definition: CutoverDefinition, *, by: str, context: CutoverContext) -> None:
    """Create a cutover; nothing is done yet.

    Raises:
        ConfigurationError: the flow cannot be used, or one of the writers is not a principal.
        LedgerError: the name is taken.
    """
    _ = context.flow
    acl_fence.check_writers(definition.writers)
    now = context.now()
    Cutovers(ledger).create(
        CutoverRow(
            name=definition.name,
            flow=definition.flow,
            state=CutoverState.RUNNING.value,
            step=Step.INVENTORY.value,
            definition=definition.to_dict(),
            created_at=now,
            created_by=by,
            updated_at=now,
        )
    )
    ledger.audits.note(
        by=by, action="cutover-create", subject=definition.name, flow=definition.flow, detail=definition.to_dict()
    )


def progress(ledger: Ledger, definition: CutoverDefinition) -> Progress:
    """Return the progress of a cutover, as recorded in the ledger."""
    row = Cutovers(ledger).find(definition.name)
    if row is None:
        raise ConfigurationError(f"there is no cutover {definition.name!r}.", action="See `mirror cutover list`.")
    # A process stores an attempt before it asks: in this order, the gates of an earlier attempt are never shown.
    present = situation_of(ledger, definition.name)
    attempts = tuple(attempt_of(each) for each in Cutovers(ledger).steps(definition.name))
    return Progress(definition, CutoverState(row.state), Step(row.step), attempts, present)


def _lasting_facts(before: Attempt | None) -> dict[str, Any]:
    """Return the facts of an attempt that the next one needs: its effects on the clusters."""
    if before is None:
        return {}
    # An undone switch has handed nothing over; a fence exists until it is lowered.
    kept = ("fence",) if before.state is StepState.UNDONE else LASTING_FACTS
    return {name: before.facts[name] for name in kept if name in before.facts}


class Machine:
    """Carries one cutover out; its own lock keeps a second process from doing the same."""

    def __init__(self, context: CutoverContext, functions: StepFunctions = STEP_FUNCTIONS) -> None:
        self._context = context
        self._functions = functions
        self._name = context.definition.name
        self._carrier = f"cutover-{uuid.uuid4()}"
        self._lease: RunLease | None = None
        self._read()

    def run(
        self, *, until: Step | None = None, wait_seconds: float = 0.0, confirmation: StepConfirmation | None = None
    ) -> Progress:
        """Run the steps.

        Args:
            until: the last step to run; None runs all.
            wait_seconds: how long to wait for the operator at each step that needs a confirmation.

        Returns:
            The progress: ended, after `until`, at a gate that does not hold, or waiting for the operator.

        Raises:
            NotNowError: it has ended already, or the confirmation belongs to no open question.
            RunLockedError: another process carries it out, or rolls it back.
        """
        event = Event.TRIGGER if confirmation is None else Event.TRIGGER_WITH_CONFIRMATION
        try:
            with hold_lock(
                self._context.ledger, flow=lock_name(self._name), run_id=self._carrier, lease_seconds=_LEASE_SECONDS
            ) as lease:
                self._lease = lease
                self._carry_out(until, wait_seconds, confirmation, event)
        except RunLockedError as error:
            present = situation_of(self._context.ledger, self._name)
            refused = after(present.state, event)
            if present.carrier is not None and present.carrier.id != self._carrier and isinstance(refused, Refusal):
                rejection = refusal_error(present, refused)
                raise RunLockedError(rejection.what, where=error.where, action=rejection.action) from error
            raise
        return progress(self._context.ledger, self._context.definition)

    def _carry_out(
        self, until: Step | None, wait_seconds: float, confirmation: StepConfirmation | None, event: Event
    ) -> None:
        """Run the steps as the only process; the result is in the ledger before the lock is released."""
        ledger, context = self._context.ledger, self._context
        assert self._lease is not None
        self._read()
        require(situation_of(ledger, self._name, apart_from=self._carrier), event)
        if confirmation is not None:
            self._check(confirmation)
        Carriers(ledger).begin(
            CarrierRow(
                cutover=self._name,
                id=self._carrier,
                kind=RUN,
                by=context.by,
                holder=self._lease.holder,
                since=context.now(),
            )
        )
        ended_as = CutoverState.FAILED
        try:
            self._close_what_was_left()
            ended_as = self._run(until, wait_seconds, confirmation)
        finally:
            self._leave(ended_as)

    def _leave(self, ended_as: CutoverState) -> None:
        try:
            Carriers(self._context.ledger).end(self._name, self._carrier, ended_as=ended_as.value)
        except LedgerError as error:
            # The release of the lock shows it, too.
            _log.warning("cutover %s: its end could not be recorded in the ledger: %s", self._name, error)

    def _check(self, confirmation: StepConfirmation) -> None:
        attempt = self._context.last.get(confirmation.step)
        if attempt is None or attempt.state is not StepState.WAITING:
            raise NotNowError(
                f"cutover {self._name} does not wait for an answer to step {confirmation.step.value} yet.",
                action=f"Run it up to that step first: `mirror cutover run {self._name}`.",
            )

    def _close_what_was_left(self) -> None:
        """End the attempts of processes that ended during a step, or before an answer."""
        for attempt in self._context.last.values():
            if attempt.state is StepState.WAITING:
                unanswered = Gate("answered", False, "no answer was given while the process waited for it.", _AGAIN)
                self._save(replace(attempt, state=StepState.FAILED, gates=(*attempt.gates, unanswered)))
            elif attempt.state is StepState.RUNNING:
                died = RunDiedError(
                    f"the process that ran step {attempt.step.value} died before the step ended.",
                    action="The step is repeated.",
                )
                self._save(replace(attempt, state=StepState.FAILED, error=died.attributes()))

    def _run(self, until: Step | None, wait_seconds: float, confirmation: StepConfirmation | None) -> CutoverState:
        self._undo_what_changed()
        if confirmation is not None and self._context.last[confirmation.step].state is StepState.UNDONE:
            # It referred to a state that does not hold any more.
            confirmation = None
        wanted = None if until is None else self._context.last.get(until)
        if until in _REPEATABLE and wanted is not None and has_passed(wanted) and not self._is_frozen():
            self._save(replace(wanted, state=StepState.UNDONE))
        for step in STEPS[self._context.definition.style]:
            if not has_passed(self._context.last.get(step)):
                state = self._take(step, wait_seconds, confirmation)
                if state is not StepState.PASSED:
                    return self._at(CutoverState.WAITING if state is StepState.WAITING else CutoverState.FAILED, step)
            if step is until:
                return self._at(CutoverState.FINISHED if step is Step.FINISH else CutoverState.RUNNING, step)
        return self._at(CutoverState.FINISHED, Step.FINISH)

    def _is_frozen(self) -> bool:
        return has_passed(self._context.last.get(Step.FREEZE))

    def _at(self, state: CutoverState, step: Step) -> CutoverState:
        Cutovers(self._context.ledger).move(self._name, state=state.value, step=step.value)
        return state

    def _undo_what_changed(self) -> None:
        """Undo what does not hold any more, as long as clients may not have written to the target."""
        if is_released(list(self._context.last.values())):
            return
        for step in STEPS[self._context.definition.style]:
            attempt, holds = self._context.last.get(step), self._functions.holds.get(step)
            if attempt is None or holds is None or not has_passed(attempt):
                continue
            found = holds(self._context)
            if not all(gate.passed for gate in found):
                self._save(replace(attempt, state=StepState.UNDONE, gates=(*attempt.gates, *found)))
                # The results of later steps are based on an outdated state.
                self._undo_after(step)
                return

    def _undo_after(self, step: Step) -> None:
        order = STEPS[self._context.definition.style]
        for later in order[order.index(step) + 1 :]:
            attempt = self._context.last.get(later)
            if attempt is None or attempt.state is StepState.UNDONE:
                continue
            if later is Step.SWITCH:
                # The flow has to copy what was written in the meantime.
                handover.undo(self._context, attempt)
            # Including a waiting step: its confirmation referred to another state.
            self._save(replace(attempt, state=StepState.UNDONE))

    def _take(self, step: Step, wait_seconds: float, confirmation: StepConfirmation | None) -> StepState:
        context = self._context
        before = context.last.get(step)
        attempt = Attempt(
            step=step,
            number=1 if before is None else before.number + 1,
            state=StepState.RUNNING,
            by=context.by,
            started_at=context.now(),
            facts=_lasting_facts(before),
        )
        Carriers(context.ledger).move(self._name, self._carrier, step.value)
        Cutovers(context.ledger).move(self._name, state=CutoverState.RUNNING.value, step=step.value)
        self._save(attempt)
        context.report_progress(f"{step.value}: started")
        try:
            if step in CONFIRMED:
                attempt, agreed = self._ask(attempt, wait_seconds, confirmation)
                if not agreed:
                    return attempt.state
                self._save(attempt)
            context.keep = lambda facts: self._keep(step, facts)
            outcome = self._functions.work[step](context)
        except MirrorError as error:
            return self._end(context.last[step], StepState.FAILED, error=error)
        except BaseException as error:
            self._end(context.last[step], StepState.FAILED, error=error)
            self._at(CutoverState.FAILED, step)
            raise
        attempt = context.last[step]
        merged = replace(attempt, facts={**attempt.facts, **outcome.facts}, gates=(*attempt.gates, *outcome.gates))
        if outcome.undoes is not None and has_passed(context.last.get(outcome.undoes)):
            failed = tuple(gate for gate in outcome.gates if not gate.passed)
            undone = context.last[outcome.undoes]
            self._save(replace(undone, state=StepState.UNDONE, gates=(*undone.gates, *failed)))
        return self._end(merged, StepState.PASSED if outcome.has_passed else StepState.FAILED)

    def _keep(self, step: Step, facts: Mapping[str, Any]) -> None:
        attempt = self._context.last[step]
        self._save(replace(attempt, facts={**attempt.facts, **facts}))

    def _ask(
        self, attempt: Attempt, wait_seconds: float, confirmation: StepConfirmation | None
    ) -> tuple[Attempt, bool]:
        """Wait for the operator; return False if the step ends here: a gate does not hold, or there is no approval."""
        context, step = self._context, attempt.step
        outcome = self._functions.before_asking[step](context)
        attempt = replace(attempt, gates=outcome.gates, facts={**attempt.facts, **outcome.facts})
        if not outcome.has_passed:
            self._end(attempt, StepState.FAILED)
            return self._context.last[step], False
        attempt = replace(attempt, state=StepState.WAITING)
        self._save(attempt)
        now = context.now()
        question = QuestionRow(
            cutover=self._name,
            step=step.value,
            attempt=attempt.number,
            carrier=self._carrier,
            asked_at=now,
            waits_until=now + timedelta(seconds=wait_seconds),
        )
        Carriers(context.ledger).ask(question)
        Cutovers(context.ledger).move(self._name, state=CutoverState.WAITING.value, step=step.value)
        context.report_progress(f"{step.value}: waiting for an operator")
        if confirmation is not None and confirmation.step is step:
            answer(context.ledger, self._name, step, yes=True, by=confirmation.by, note=confirmation.note)
        until = context.monotonic() + wait_seconds
        follow = context.monotonic()
        while True:
            self._check_lease()
            taken = Carriers(context.ledger).take(question)
            if taken is not None:
                return self._handle_answer(attempt, taken)
            if context.monotonic() >= until and Carriers(context.ledger).give_up(question):
                return attempt, False
            if step is Step.FREEZE and context.monotonic() >= follow:
                self._functions.while_waiting(context)
                follow = context.monotonic() + _FOLLOW_SECONDS
            context.sleep(_POLL_SECONDS)

    def _handle_answer(self, attempt: Attempt, taken: QuestionRow) -> tuple[Attempt, bool]:
        context, step, by, note = self._context, attempt.step, str(taken.answered_by), taken.note or ""
        if taken.answer == NO:
            refused = Gate("approved", False, f"rejected by {by}.", f"{_AGAIN} Or roll it back.")
            facts = {**attempt.facts, REFUSED_BY: by, "note": note}
            self._end(replace(attempt, facts=facts, gates=(*attempt.gates, refused)), StepState.FAILED)
            return context.last[step], False
        Cutovers(context.ledger).move(self._name, state=CutoverState.RUNNING.value, step=step.value)
        facts = {**attempt.facts, CONFIRMED_BY: by, "note": note}
        return replace(attempt, state=StepState.RUNNING, by=by, facts=facts), True

    def _end(self, attempt: Attempt, state: StepState, *, error: BaseException | None = None) -> StepState:
        error_attributes = None if error is None else attributes_of(error)
        ended = replace(attempt, state=state, finished_at=self._context.now(), error=error_attributes)
        self._save(ended)
        self._context.report_progress(f"{ended.step.value}: {state.value}")
        return state

    def _save(self, attempt: Attempt) -> None:
        self._check_lease()
        Cutovers(self._context.ledger).save_step(step_row(self._name, attempt))
        self._context.last = {**self._context.last, attempt.step: attempt}

    def _check_lease(self) -> None:
        """Stop a process that was suspended, and that another has succeeded, before it acts."""
        if self._lease is not None:
            self._lease.check()

    def _read(self) -> None:
        self._context.last = attempts_of(self._context.ledger, self._name)
