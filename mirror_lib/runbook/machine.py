"""Taking a cutover through its steps: resumable at any of them, never past a gate that does not hold.

The ledger keeps every attempt. What a step that has passed had found is looked at again on the live clusters when the
cutover is resumed: one that does not hold any more is undone and taken again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.relay.run_lock import hold_lock
from mirror_lib.runbook import handover, steps_before, steps_cut, steps_over
from mirror_lib.runbook.desk import Desk
from mirror_lib.runbook.model import Attempt, CutoverDefinition, CutoverState, Gate, Step, StepState
from mirror_lib.runbook.order import (
    CONFIRMED,
    CONFIRMED_BY,
    LASTING_FACTS,
    REFUSED_BY,
    STEPS,
    has_passed,
    is_released,
    last_attempts,
)
from mirror_lib.runbook.outcome import Outcome
from mirror_lib.runbook.records import attempt_of, attempts_of, step_row

_POLL_SECONDS = 0.3
#: Between two rounds while a person stops the writers: the copy stays close, and the ledger is not filled with runs.
_FOLLOW_SECONDS = 5.0
#: They may be taken anew as often as anybody likes, until the writers are stopped.
_REPEATABLE = frozenset({Step.INVENTORY, Step.PREFLIGHT, Step.REHEARSE})
_LEASE_SECONDS = 30.0

_WORK: Mapping[Step, Callable[[Desk], Outcome]] = {
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
}
#: What must hold before a person is asked.
_BEFORE_ASKING: Mapping[Step, Callable[[Desk], Outcome]] = {
    Step.FREEZE: steps_cut.before_freeze,
    Step.APPROVE: steps_over.before_approval,
}
#: Read again when a cutover goes on, as long as nobody may write to the target.
_HOLDS: Mapping[Step, Callable[[Desk], tuple[Gate, ...]]] = {
    Step.INVENTORY: steps_before.inventory_holds,
    Step.FREEZE: steps_cut.freeze_holds,
    Step.DRAIN: steps_cut.cut_holds,
}


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a cutover is."""

    definition: CutoverDefinition
    state: CutoverState
    #: The step that is under way, waits, failed, or was the last.
    step: Step
    attempts: tuple[Attempt, ...]

    @property
    def exit_code(self) -> int:
        """0 when it went on, or is at its end; 3 when a person has to do something."""
        return 3 if self.state in (CutoverState.FAILED, CutoverState.WAITING) else 0


def create(ledger: Ledger, definition: CutoverDefinition, *, by: str, desk: Desk) -> None:
    """Begin a cutover; nothing is done yet.

    Raises:
        ConfigurationError: the flow cannot be used.
        LedgerError: the name is taken.
    """
    _ = desk.flow
    now = desk.now()
    ledger.cutovers.create(
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
    """Where a cutover is, as the ledger has it."""
    row = ledger.cutovers.find(definition.name)
    if row is None:
        raise ConfigurationError(f"there is no cutover {definition.name!r}.", action="`mirror cutover list` has them.")
    attempts = tuple(attempt_of(each) for each in ledger.cutovers.steps(definition.name))
    return Progress(definition, CutoverState(row.state), Step(row.step), attempts)


def confirm(ledger: Ledger, definition: CutoverDefinition, step: Step, *, by: str, note: str = "") -> None:
    """A person's word: the writers are stopped, or everything is agreed on.

    Raises:
        ConfigurationError: the cutover does not wait for it.
    """
    _speak(ledger, definition, step, {CONFIRMED_BY: by, "note": note}, action=f"cutover-{step.value}", by=by)


def refuse(ledger: Ledger, definition: CutoverDefinition, step: Step, *, by: str, note: str = "") -> None:
    """A person's word that it is not so: the step fails, and can be tried again.

    Raises:
        ConfigurationError: the cutover does not wait for it.
    """
    _speak(ledger, definition, step, {REFUSED_BY: by, "note": note}, action=f"cutover-{step.value}-refused", by=by)


def _speak(
    ledger: Ledger, definition: CutoverDefinition, step: Step, word: Mapping[str, str], *, action: str, by: str
) -> None:
    last = last_attempts(progress(ledger, definition).attempts)
    attempt = last.get(step)
    if attempt is None or attempt.state is not StepState.WAITING:
        raise ConfigurationError(
            f"cutover {definition.name} does not wait for {step.value}.",
            action=f"`mirror cutover status {definition.name}` tells what it waits for.",
        )
    ledger.cutovers.save_step(step_row(definition.name, replace(attempt, facts={**attempt.facts, **word})))
    ledger.audits.note(
        by=by,
        action=action,
        subject=definition.name,
        flow=definition.flow,
        detail={**word, "gates": [gate.to_dict() for gate in attempt.gates]},
    )


def lock_name(name: str) -> str:
    """What the lock of a cutover is called among the run locks of flows; no flow's name has a blank in it."""
    return f"cutover {name}"


def _lasting(before: Attempt | None) -> dict[str, Any]:
    """What a further attempt has to know of the one before: what stands on the clusters because of it."""
    if before is None:
        return {}
    # A switch that was undone has handed over nothing; a fence stands until it is lowered.
    kept = ("fence",) if before.state is StepState.UNDONE else LASTING_FACTS
    return {name: before.facts[name] for name in kept if name in before.facts}


class Machine:
    """Takes one cutover on; a lock of its own keeps a second process from doing the same."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._name = desk.definition.name
        self._read()

    def run(self, *, until: Step | None = None, wait_seconds: float = 0.0) -> Progress:
        """Take step after step.

        Args:
            until: the last step to take; None goes to the end.
            wait_seconds: how long a person is waited for at each step that needs one.

        Returns:
            Where it is: at its end, after `until`, at a gate that does not hold, or waiting for a person.

        Raises:
            ConfigurationError: it has ended already.
            RunLockedError: another process takes it on.
        """
        with hold_lock(
            self._desk.ledger,
            flow=lock_name(self._name),
            run_id=f"cutover-{uuid.uuid4()}",
            lease_seconds=_LEASE_SECONDS,
        ):
            present = progress(self._desk.ledger, self._desk.definition)
            if present.state.ended:
                raise ConfigurationError(
                    f"cutover {self._name} is {present.state.value}.", action="Begin a new one under another name."
                )
            self._read()
            return self._run(until, wait_seconds)

    def _run(self, until: Step | None, wait_seconds: float) -> Progress:
        self._look_again()
        wanted = None if until is None else self._desk.last.get(until)
        if until in _REPEATABLE and wanted is not None and has_passed(wanted) and not self._is_frozen():
            self._save(replace(wanted, state=StepState.UNDONE))
        for step in STEPS[self._desk.definition.style]:
            if not has_passed(self._desk.last.get(step)):
                state = self._take(step, wait_seconds)
                if state is not StepState.PASSED:
                    return self._at(CutoverState.WAITING if state is StepState.WAITING else CutoverState.FAILED, step)
            if step is until:
                return self._at(CutoverState.FINISHED if step is Step.FINISH else CutoverState.RUNNING, step)
        return self._at(CutoverState.FINISHED, Step.FINISH)

    def _is_frozen(self) -> bool:
        return has_passed(self._desk.last.get(Step.FREEZE))

    def _at(self, state: CutoverState, step: Step) -> Progress:
        self._desk.ledger.cutovers.move(self._name, state=state.value, step=step.value)
        return progress(self._desk.ledger, self._desk.definition)

    def _look_again(self) -> None:
        """Undo what does not hold any more, as long as nobody may have written to the target."""
        if is_released(list(self._desk.last.values())):
            return
        for step in STEPS[self._desk.definition.style]:
            attempt, holds = self._desk.last.get(step), _HOLDS.get(step)
            if attempt is None or holds is None or not has_passed(attempt):
                continue
            found = holds(self._desk)
            if not all(gate.passed for gate in found):
                self._save(replace(attempt, state=StepState.UNDONE, gates=(*attempt.gates, *found)))
                # What was found behind it was found about something else.
                self._undo_after(step)
                return

    def _undo_after(self, step: Step) -> None:
        order = STEPS[self._desk.definition.style]
        for later in order[order.index(step) + 1 :]:
            attempt = self._desk.last.get(later)
            if attempt is None or attempt.state is StepState.UNDONE:
                continue
            if later is Step.SWITCH:
                # The flow has to copy again what was written in the meantime.
                handover.undo(self._desk, attempt)
            # Also what waits: a word that was given then was given about something else.
            self._save(replace(attempt, state=StepState.UNDONE))

    def _take(self, step: Step, wait_seconds: float) -> StepState:
        desk = self._desk
        before = desk.last.get(step)
        attempt = Attempt(
            step=step,
            number=1 if before is None else before.number + 1,
            state=StepState.RUNNING,
            by=desk.by,
            started_at=desk.now(),
            facts=_lasting(before),
        )
        if before is not None and before.state is StepState.WAITING:
            # The same question is still open.
            attempt = before
        desk.ledger.cutovers.move(self._name, state=CutoverState.RUNNING.value, step=step.value)
        self._save(attempt)
        desk.tell(f"{step.value}: begins")
        try:
            if step in CONFIRMED:
                attempt, asked = self._ask(attempt, wait_seconds)
                if not asked:
                    return attempt.state
                self._save(attempt)
            desk.keep = lambda facts: self._keep(step, facts)
            outcome = _WORK[step](desk)
        except MirrorError as error:
            return self._end(desk.last[step], StepState.FAILED, error=error)
        except BaseException:
            self._end(desk.last[step], StepState.FAILED)
            self._at(CutoverState.FAILED, step)
            raise
        attempt = desk.last[step]
        merged = replace(attempt, facts={**attempt.facts, **outcome.facts}, gates=(*attempt.gates, *outcome.gates))
        return self._end(merged, StepState.PASSED if outcome.passed else StepState.FAILED)

    def _keep(self, step: Step, facts: Mapping[str, Any]) -> None:
        attempt = self._desk.last[step]
        self._save(replace(attempt, facts={**attempt.facts, **facts}))

    def _ask(self, attempt: Attempt, wait_seconds: float) -> tuple[Attempt, bool]:
        """Wait for a person; False where the step ends here: a gate does not hold, or nobody has spoken yet."""
        desk, step = self._desk, attempt.step
        if attempt.state is not StepState.WAITING:
            outcome = _BEFORE_ASKING[step](desk)
            attempt = replace(attempt, gates=outcome.gates, facts={**attempt.facts, **outcome.facts})
            if not outcome.passed:
                self._end(attempt, StepState.FAILED)
                return self._desk.last[step], False
            attempt = replace(attempt, state=StepState.WAITING)
            self._save(attempt)
        desk.ledger.cutovers.move(self._name, state=CutoverState.WAITING.value, step=step.value)
        desk.tell(f"{step.value}: waits for a person")
        until = desk.monotonic() + wait_seconds
        follow = desk.monotonic()
        while True:
            self._read()
            attempt = desk.last[step]
            if attempt.state is not StepState.WAITING:
                return attempt, False
            if REFUSED_BY in attempt.facts:
                refused = Gate("agreed", False, f"{attempt.facts[REFUSED_BY]} did not agree.", "Go on, or roll back.")
                self._end(replace(attempt, gates=(*attempt.gates, refused)), StepState.FAILED)
                return desk.last[step], False
            if CONFIRMED_BY in attempt.facts:
                desk.ledger.cutovers.move(self._name, state=CutoverState.RUNNING.value, step=step.value)
                return replace(attempt, by=str(attempt.facts[CONFIRMED_BY])), True
            if desk.monotonic() >= until:
                return attempt, False
            if step is Step.FREEZE and desk.monotonic() >= follow:
                steps_cut.while_waiting(desk)
                follow = desk.monotonic() + _FOLLOW_SECONDS
            desk.sleep(_POLL_SECONDS)

    def _end(self, attempt: Attempt, state: StepState, *, error: MirrorError | None = None) -> StepState:
        told = None if error is None else error.attributes()
        ended = replace(attempt, state=state, finished_at=self._desk.now(), error=told)
        self._save(ended)
        self._desk.tell(f"{ended.step.value}: {state.value}")
        return state

    def _save(self, attempt: Attempt) -> None:
        self._desk.ledger.cutovers.save_step(step_row(self._name, attempt))
        self._desk.last = {**self._desk.last, attempt.step: attempt}

    def _read(self) -> None:
        self._desk.last = attempts_of(self._desk.ledger, self._name)
