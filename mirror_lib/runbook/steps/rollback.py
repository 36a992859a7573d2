"""Taking a cutover back, as long as nobody has written to the target: everything is as it was before it began."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from mirror_lib.errors import MirrorError, RunLockedError, Where
from mirror_lib.ledger.cutover_rows import CarrierRow
from mirror_lib.ledger.tables.cutover_carriers import lock_name
from mirror_lib.relay.run_lock import RunLease, hold_lock
from mirror_lib.runbook import fences, gates, handover
from mirror_lib.runbook.context import Desk
from mirror_lib.runbook.model import CutoverState, Gate, Step, StepState
from mirror_lib.runbook.order import STEPS, is_released
from mirror_lib.runbook.records import attempt_of, attempts_of, step_row
from mirror_lib.runbook.scope import exactly, log_ends
from mirror_lib.runbook.states.cutover import Event, Refusal, after
from mirror_lib.runbook.states.situation import NO, ROLLBACK, refusal_error, require, situation_of
from mirror_lib.runbook.steps.cut import cuts
from mirror_lib.sync.acls.staged import revoke_acls

_LEASE_SECONDS = 30.0
#: Whoever waits for a person looks for a word several times a second, and then ends.
_LEAVE_SECONDS = 60.0


class NoWayBackError(MirrorError):
    """The cutover is past the point of no return: somebody has written to the target."""

    reason = "past-the-point-of-no-return"
    exit_code = 3


def roll_back(
    desk: Desk, *, note: str = "", undo: Callable[[Desk], tuple[Gate, ...]] | None = None
) -> tuple[Gate, ...]:
    """Undo a cutover's steps, the last one first; doing it again does what is left.

    A process that waits for a person's word ends; one that is in the middle of a step is not disturbed. Positions that
    were committed for groups on the target stay: nobody goes on by them until a group moves there.

    Args:
        undo: what undoes the steps on the clusters; None is the usual way.

    Returns:
        What was undone. When all of it was, the cutover has ended.

    Raises:
        NotNowError: the cutover has ended already; a finished one is brought home by a failback.
        NoWayBackError: records were written to the target that are on no other cluster: a failback brings them home.
        RunLockedError: another process takes the cutover on.
        MirrorError: a cluster or the ledger cannot be used.
    """
    ledger, name = desk.ledger, desk.definition.name
    if situation_of(ledger, name).state.has_ended:
        require(situation_of(ledger, name), Event.ROLL_BACK)
    _send_away(desk)
    carrier = f"{ROLLBACK}-{uuid.uuid4()}"
    with _alone(desk, carrier) as lease:
        require(situation_of(ledger, name, apart_from=carrier), Event.ROLL_BACK)
        ledger.carriers.begin(
            CarrierRow(cutover=name, id=carrier, kind=ROLLBACK, by=desk.by, holder=lease.holder, since=desk.now())
        )
        ended_as = CutoverState.FAILED
        try:
            undone, ended_as = _undo_all(desk, undo or _undo)
        finally:
            ledger.carriers.end(name, carrier, ended_as=ended_as.value)
    ledger.audits.note(
        by=desk.by,
        action="cutover-rollback",
        subject=name,
        flow=desk.definition.flow,
        detail={"note": note, "undone": [gate.to_dict() for gate in undone]},
    )
    return undone


@contextmanager
def _alone(desk: Desk, run_id: str) -> Iterator[RunLease]:
    """Hold the cutover's lock; a process that waits for a person leaves."""
    name = desk.definition.name
    try:
        with hold_lock(
            desk.ledger,
            flow=lock_name(name),
            run_id=run_id,
            lease_seconds=_LEASE_SECONDS,
            wait_seconds=_LEAVE_SECONDS,
        ) as lease:
            yield lease
    except RunLockedError as error:
        present = situation_of(desk.ledger, name)
        refused = after(present.state, Event.ROLL_BACK)
        if present.carrier is not None and present.carrier.id != run_id and isinstance(refused, Refusal):
            raise refusal_error(present, refused) from error
        raise


def _undo_all(desk: Desk, undo: Callable[[Desk], tuple[Gate, ...]]) -> tuple[tuple[Gate, ...], CutoverState]:
    name = desk.definition.name
    desk.last = attempts_of(desk.ledger, name)
    undone = undo(desk)
    if not all(gate.passed for gate in undone):
        return undone, CutoverState.FAILED
    _note_undone(desk)
    desk.ledger.cutovers.move(name, state=CutoverState.ROLLED_BACK.value, step=Step.INVENTORY.value)
    return undone, CutoverState.ROLLED_BACK


def _send_away(desk: Desk) -> None:
    """Let a process that waits for an answer end."""
    asked = situation_of(desk.ledger, desk.definition.name).question
    if asked is not None and asked.answer is None:
        desk.ledger.carriers.answer(asked, NO, by=desk.by, note="rolled back")


def _undo(desk: Desk) -> tuple[Gate, ...]:
    flow = desk.whole_flow
    undone: list[Gate] = []
    released = desk.last.get(Step.RELEASE)
    if released is not None and is_released([released]):
        _check_untouched(desk)
        done = revoke_acls(flow, desk.ledger, by=desk.by, topics=exactly(topic.target for topic in desk.topics))
        failed = [str(error) for _, error in done.failed]
        good = done.notice or f"{len(done.changed):,} grants to write wait again."
        undone.append(gates.counts("grants to write", failed, good, "Revoke them by `mirror acls revoke`."))
        # Between the look and this nobody could be kept from writing.
        _check_untouched(desk)
    switched = desk.last.get(Step.SWITCH)
    if switched is not None and switched.state is not StepState.UNDONE:
        undone.append(handover.undo(desk, switched))
    # Every attempt may have put some of it there.
    attempts = [attempt_of(row) for row in desk.ledger.cutovers.steps(desk.definition.name)]
    fence = [acl for each in attempts if each.step is Step.FREEZE for acl in each.facts.get("fence", ())]
    if fence:
        undone.append(fences.lower_fence(flow, fence))
    return tuple(undone)


def _check_untouched(desk: Desk) -> None:
    gate = gates.cut_holds(cuts(desk), log_ends(desk.whole_flow, desk.topics), target_too=True)[-1]
    if not gate.passed:
        raise NoWayBackError(
            f"cutover {desk.definition.name} cannot be taken back: {gate.what}.",
            where=Where(flow=desk.definition.flow),
            action=f"Bring everything home by `mirror cutover back {desk.definition.name}`.",
        )


def _note_undone(desk: Desk) -> None:
    for step in STEPS[desk.definition.style]:
        attempt = desk.last.get(step)
        if attempt is not None and attempt.state is not StepState.UNDONE:
            undone = replace(attempt, state=StepState.UNDONE)
            desk.ledger.cutovers.save_step(step_row(desk.definition.name, undone))
