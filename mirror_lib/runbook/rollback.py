"""Taking a cutover back, as long as nobody has written to the target: everything is as it was before it began."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.errors import MirrorError, Where
from mirror_lib.ledger.cutover_rows import HandedOverRow
from mirror_lib.ledger.handovers import opposite_of
from mirror_lib.runbook import fences, gates
from mirror_lib.runbook.desk import Desk
from mirror_lib.runbook.model import Attempt, CutoverState, Gate, Step, StepState
from mirror_lib.runbook.order import STEPS, has_passed, is_released
from mirror_lib.runbook.records import step_row
from mirror_lib.runbook.steps_cut import cuts
from mirror_lib.runbook.wave import exactly, log_ends
from mirror_lib.sync.staged_acls import revoke_acls


class NoWayBackError(MirrorError):
    """The cutover is past the point of no return: somebody has written to the target."""

    reason = "past-the-point-of-no-return"
    exit_code = 3


def roll_back(desk: Desk, *, note: str = "") -> tuple[Gate, ...]:
    """Undo a cutover's steps, the last one first; doing it again does what is left.

    Positions that were committed for groups on the target stay: nobody goes on by them until a group moves there.

    Returns:
        What was undone. When all of it was, the cutover has ended.

    Raises:
        NoWayBackError: records were written to the target that are on no other cluster: a failback brings them home.
        MirrorError: a cluster or the ledger cannot be used.
    """
    definition, flow = desk.definition, desk.whole_flow
    if is_released(list(desk.last.values())):
        _check_untouched(desk)
    undone: list[Gate] = []
    if (attempt := desk.last.get(Step.RELEASE)) is not None and attempt.state is not StepState.UNDONE:
        done = revoke_acls(flow, desk.ledger, by=desk.by, topics=exactly(topic.target for topic in desk.topics))
        failed = [str(error) for _, error in done.failed]
        good = done.notice or f"{len(done.changed):,} grants to write wait again."
        undone.append(gates.counts("grants to write", failed, good, "Revoke them by `mirror acls revoke`."))
        # Between the look and this nobody could be kept from writing.
        _check_untouched(desk)
    if (attempt := desk.last.get(Step.SWITCH)) is not None and attempt.state is not StepState.UNDONE:
        undone.append(undo_switch(desk, attempt))
    if (attempt := desk.last.get(Step.FREEZE)) is not None and (fence := attempt.facts.get("fence")):
        undone.append(fences.lower_fence(flow, fence))
    if all(gate.passed for gate in undone):
        _note_undone(desk)
        state, step = CutoverState.ROLLED_BACK, Step.INVENTORY
        desk.ledger.cutovers.move(definition.name, state=state.value, step=step.value)
    desk.ledger.audits.note(
        by=desk.by,
        action="cutover-rollback",
        subject=definition.name,
        flow=definition.flow,
        detail={"note": note, "undone": [gate.to_dict() for gate in undone]},
    )
    return tuple(undone)


def _check_untouched(desk: Desk) -> None:
    gate = gates.cut_holds(cuts(desk), log_ends(desk.whole_flow, desk.topics), target_too=True)[-1]
    if not gate.passed:
        raise NoWayBackError(
            f"cutover {desk.definition.name} cannot be taken back: {gate.what}.",
            where=Where(flow=desk.definition.flow),
            action=f"Bring everything home by `mirror cutover back {desk.definition.name}`.",
        )


def undo_switch(desk: Desk, attempt: Attempt) -> Gate:
    """Let the flow copy again what an attempt at the switch has handed over."""
    handovers = attempt.facts.get("handovers", {})
    flow, store = desk.definition.flow, desk.ledger.cutovers
    away, home = handovers.get("away", []), handovers.get("home", [])
    store.take_back(flow, away)
    back = opposite_of(desk.config, desk.whole_flow)
    if home and back is not None:
        now, names = desk.now(), {topic.target: topic.source for topic in desk.topics}
        store.hand_over(
            [
                HandedOverRow(
                    flow=str(back.flow),
                    topic=topic,
                    target_topic=names.get(topic, topic),
                    cutover=desk.definition.name,
                    since=now,
                    by=desk.by,
                )
                for topic in home
            ]
        )
    return Gate("handed over", True, f"flow {flow} copies {len(away) or len(home):,} topics again.")


def _note_undone(desk: Desk) -> None:
    for step in STEPS[desk.definition.style]:
        attempt = desk.last.get(step)
        if attempt is not None and (has_passed(attempt) or attempt.state is StepState.WAITING):
            undone = replace(attempt, state=StepState.UNDONE)
            desk.ledger.cutovers.save_step(step_row(desk.definition.name, undone))
