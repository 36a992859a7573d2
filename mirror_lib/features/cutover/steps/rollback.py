"""Roll a cutover back, as long as clients have not written to the target: everything is as before."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from mirror_lib.copy.run_lock import RunLease, hold_lock
from mirror_lib.counted import counted
from mirror_lib.errors import MirrorError, RunLockedError, Where
from mirror_lib.features.cutover import acl_fence, gates, handover
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.model import CutoverState, Gate, Step, StepState
from mirror_lib.features.cutover.order import STEPS, is_released
from mirror_lib.features.cutover.records import attempt_of, attempts_of, step_row
from mirror_lib.features.cutover.scope import exactly, log_ends
from mirror_lib.features.cutover.staged_acls import revoke_acls
from mirror_lib.features.cutover.states.cutover import Event, Refusal, after
from mirror_lib.features.cutover.states.situation import NO, ROLLBACK, refusal_error, require, situation_of
from mirror_lib.features.cutover.steps.cut import cuts
from mirror_lib.features.cutover.tables.carriers import CarrierRow, Carriers
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.tables.locks import lock_name

_LEASE_SECONDS = 30.0
#: A process that waits for the operator checks for an answer several times a second, and then ends.
_LEAVE_SECONDS = 60.0


class PointOfNoReturnError(MirrorError):
    """The cutover cannot be rolled back any more: clients have written to the target."""

    reason = "past-the-point-of-no-return"
    exit_code = 3


def roll_back(
    context: CutoverContext, *, note: str = "", undo: Callable[[CutoverContext], tuple[Gate, ...]] | None = None
) -> tuple[Gate, ...]:
    """Undo a cutover's steps, the last one first; repeating it undoes the rest.

    A process that waits for a confirmation ends; one that is running a step is not interrupted. Offsets that were
    committed for groups on the target stay: they are not used until a group moves there.

    Args:
        undo: undoes the steps on the clusters; None is the default.

    Returns:
        What was undone. If all of it was, the cutover has ended.

    Raises:
        NotNowError: the cutover has ended already; a finished one needs a failback.
        PointOfNoReturnError: records were written to the target that are on no other cluster: a failback copies them.
        RunLockedError: another process carries the cutover out.
        MirrorError: a cluster or the ledger cannot be used.
    """
    ledger, name = context.ledger, context.definition.name
    if situation_of(ledger, name).state.has_ended:
        require(situation_of(ledger, name), Event.ROLL_BACK)
    _send_away(context)
    carrier = f"{ROLLBACK}-{uuid.uuid4()}"
    with _alone(context, carrier) as lease:
        require(situation_of(ledger, name, apart_from=carrier), Event.ROLL_BACK)
        Carriers(ledger).begin(
            CarrierRow(cutover=name, id=carrier, kind=ROLLBACK, by=context.by, holder=lease.holder, since=context.now())
        )
        ended_as = CutoverState.FAILED
        try:
            undone, ended_as = _undo_all(context, undo or _undo)
        finally:
            Carriers(ledger).end(name, carrier, ended_as=ended_as.value)
    ledger.audits.note(
        by=context.by,
        action="cutover-rollback",
        subject=name,
        flow=context.definition.flow,
        detail={"note": note, "undone": [gate.to_dict() for gate in undone]},
    )
    return undone


@contextmanager
def _alone(context: CutoverContext, run_id: str) -> Iterator[RunLease]:
    """Hold the cutover's lock; a process that waits for the operator ends."""
    name = context.definition.name
    try:
        with hold_lock(
            context.ledger,
            flow=lock_name(name),
            run_id=run_id,
            lease_seconds=_LEASE_SECONDS,
            wait_seconds=_LEAVE_SECONDS,
        ) as lease:
            yield lease
    except RunLockedError as error:
        present = situation_of(context.ledger, name)
        refused = after(present.state, Event.ROLL_BACK)
        if present.carrier is not None and present.carrier.id != run_id and isinstance(refused, Refusal):
            raise refusal_error(present, refused) from error
        raise


def _undo_all(
    context: CutoverContext, undo: Callable[[CutoverContext], tuple[Gate, ...]]
) -> tuple[tuple[Gate, ...], CutoverState]:
    name = context.definition.name
    context.last = attempts_of(context.ledger, name)
    undone = undo(context)
    if not all(gate.passed for gate in undone):
        return undone, CutoverState.FAILED
    _note_undone(context)
    Cutovers(context.ledger).move(name, state=CutoverState.ROLLED_BACK.value, step=Step.INVENTORY.value)
    return undone, CutoverState.ROLLED_BACK


def _send_away(context: CutoverContext) -> None:
    """End a process that waits for an answer."""
    question = situation_of(context.ledger, context.definition.name).question
    if question is not None and question.answer is None:
        Carriers(context.ledger).answer(question, NO, by=context.by, note="rolled back")


def _undo(context: CutoverContext) -> tuple[Gate, ...]:
    flow = context.whole_flow
    undone: list[Gate] = []
    released = context.last.get(Step.RELEASE)
    if released is not None and is_released([released]):
        _check_untouched(context)
        done = revoke_acls(
            flow, context.ledger, by=context.by, topics=exactly(topic.target for topic in context.topics)
        )
        failed = [str(error) for _, error in done.failed]
        good = done.notice or f"{counted(len(done.changed), 'grant to write is', 'grants to write are')} staged again."
        undone.append(gates.counts("grants to write", failed, good, "Revoke them with `mirror acls revoke`."))
        # Between the first check and this one, writing to the target was possible.
        _check_untouched(context)
    switched = context.last.get(Step.SWITCH)
    if switched is not None and switched.state is not StepState.UNDONE:
        undone.append(handover.undo(context, switched))
    # Every attempt may have created some of them.
    attempts = [attempt_of(row) for row in Cutovers(context.ledger).steps(context.definition.name)]
    fence = [acl for each in attempts if each.step is Step.FREEZE for acl in each.facts.get("fence", ())]
    if fence:
        undone.append(acl_fence.lower_fence(flow, fence))
    return tuple(undone)


def _check_untouched(context: CutoverContext) -> None:
    gate = gates.cut_holds(cuts(context), log_ends(context.whole_flow, context.topics), target_too=True)[-1]
    if not gate.passed:
        raise PointOfNoReturnError(
            f"cutover {context.definition.name} cannot be rolled back: {gate.what}.",
            where=Where(flow=context.definition.flow),
            action=f"Fail back with `mirror cutover back {context.definition.name}`.",
        )


def _note_undone(context: CutoverContext) -> None:
    for step in STEPS[context.definition.style]:
        attempt = context.last.get(step)
        if attempt is not None and attempt.state is not StepState.UNDONE:
            undone = replace(attempt, state=StepState.UNDONE)
            Cutovers(context.ledger).save_step(step_row(context.definition.name, undone))
