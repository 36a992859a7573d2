"""In which order a cutover goes, what a person has to do in it, and up to where it can be taken back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mirror_lib.runbook.model import Attempt, Step, StepState, Style

_BEFORE = (Step.INVENTORY, Step.PREFLIGHT, Step.REHEARSE)
_CUT = (Step.FREEZE, Step.DRAIN, Step.VERIFY)
_OVER = (Step.APPROVE, Step.SWITCH, Step.RELEASE)

#: Rights to write are released after everything else has been agreed on and the flow has let go of the topics: from
#: then on somebody may write to the target, and what is written there is on no other cluster.
STEPS: Mapping[Style, tuple[Step, ...]] = {
    Style.TOGETHER: (*_BEFORE, *_CUT, Step.TRANSLATE, *_OVER, Step.WATCH, Step.FINISH),
    Style.CONSUMERS_FIRST: (*_BEFORE, Step.TRANSLATE, *_CUT, *_OVER, Step.WATCH, Step.FINISH),
    Style.PRODUCERS_FIRST: (*_BEFORE, *_CUT, *_OVER, Step.TRANSLATE, Step.WATCH, Step.FINISH),
}

#: They pass when a person says so.
CONFIRMED = frozenset({Step.FREEZE, Step.APPROVE})
#: Between the first and the last of them the writers stand still.
WRITERS_STOP, WRITERS_GO = Step.FREEZE, Step.RELEASE
#: What stands in the facts of an attempt once a person has spoken.
CONFIRMED_BY, REFUSED_BY = "confirmed_by", "refused_by"
#: Stands in the facts of a release from before its first grant on.
RELEASING = "releasing"
#: Facts that a further attempt at a step takes over: what stands on the clusters or in the ledger because of it.
LASTING_FACTS = (RELEASING, "handovers", "fence")


def last_attempts(attempts: Sequence[Attempt]) -> dict[Step, Attempt]:
    """The newest attempt at each step that was tried."""
    return {attempt.step: attempt for attempt in sorted(attempts, key=lambda each: each.number)}


def next_step(style: Style, attempts: Sequence[Attempt]) -> Step | None:
    """The first step that has not passed; None when all have."""
    last = last_attempts(attempts)
    return next((step for step in STEPS[style] if not has_passed(last.get(step))), None)


def has_passed(attempt: Attempt | None) -> bool:
    """Whether a step needs no further attempt."""
    return attempt is not None and attempt.state is StepState.PASSED


def comes_before(style: Style, first: Step, second: Step) -> bool:
    """Whether one step is done before another."""
    return STEPS[style].index(first) < STEPS[style].index(second)


def is_released(attempts: Sequence[Attempt]) -> bool:
    """Whether somebody may have written to the target: the first right to write may have been given."""
    released = last_attempts(attempts).get(Step.RELEASE)
    return released is not None and released.state is not StepState.UNDONE and bool(released.facts.get(RELEASING))


def writers_stood_still(attempts: Sequence[Attempt]) -> float | None:
    """Seconds from the word that the writers are stopped to their rights on the target; None before that."""
    last = last_attempts(attempts)
    stop, go = last.get(WRITERS_STOP), last.get(WRITERS_GO)
    if not (stop and go and has_passed(stop) and has_passed(go)):
        return None
    if stop.finished_at is None or go.finished_at is None:
        return None
    return (go.finished_at - stop.finished_at).total_seconds()
