"""The order of the steps of a cutover, which of them need an operator, and up to where it can be rolled back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mirror_lib.features.cutover.model import Attempt, Confirmation, Step, StepState, Style

_BEFORE = (Step.INVENTORY, Step.PREFLIGHT, Step.REHEARSE)
_CUT = (Step.FREEZE, Step.DRAIN, Step.VERIFY)
_OVER = (Step.APPROVE, Step.SWITCH, Step.RELEASE)

#: Write grants are released after all approvals, when the flow has stopped copying the topics: from then on clients may
#: write to the target, and these records are on no other cluster.
STEPS: Mapping[Style, tuple[Step, ...]] = {
    Style.TOGETHER: (*_BEFORE, *_CUT, Step.TRANSLATE, *_OVER, Step.WATCH, Step.FINISH),
    Style.CONSUMERS_FIRST: (*_BEFORE, Step.TRANSLATE, *_CUT, *_OVER, Step.WATCH, Step.FINISH),
    Style.PRODUCERS_FIRST: (*_BEFORE, *_CUT, *_OVER, Step.TRANSLATE, Step.WATCH, Step.FINISH),
}

#: These steps pass when the operator confirms them.
CONFIRMED = frozenset(Step(each.value) for each in Confirmation)
#: Between the first and the last of them the writers are stopped.
WRITERS_STOP, WRITERS_GO = Step.FREEZE, Step.RELEASE
#: Facts of an attempt with the operator's answer.
CONFIRMED_BY, REFUSED_BY = "confirmed_by", "refused_by"
#: Fact of a release, set before its first grant.
RELEASING = "releasing"
#: Facts that the next attempt at a step takes over: its effects on the clusters or in the ledger.
LASTING_FACTS = (RELEASING, "handovers", "fence")


def last_attempts(attempts: Sequence[Attempt]) -> dict[Step, Attempt]:
    """Return the newest attempt at each step that was tried."""
    return {attempt.step: attempt for attempt in sorted(attempts, key=lambda each: each.number)}


def has_passed(attempt: Attempt | None) -> bool:
    """Return True if a step needs no further attempt."""
    return attempt is not None and attempt.state is StepState.PASSED


def comes_before(style: Style, first: Step, second: Step) -> bool:
    """Return True if one step is done before another."""
    return STEPS[style].index(first) < STEPS[style].index(second)


def is_released(attempts: Sequence[Attempt]) -> bool:
    """Return True if clients may have written to the target: the first write grant may have been created."""
    released = last_attempts(attempts).get(Step.RELEASE)
    return released is not None and released.state is not StepState.UNDONE and bool(released.facts.get(RELEASING))


def writers_stood_still(attempts: Sequence[Attempt]) -> float | None:
    """Return the seconds from the freeze to the write grants on the target; None before that."""
    last = last_attempts(attempts)
    stop, go = last.get(WRITERS_STOP), last.get(WRITERS_GO)
    if not (stop and go and has_passed(stop) and has_passed(go)):
        return None
    if stop.finished_at is None or go.finished_at is None:
        return None
    return (go.finished_at - stop.finished_at).total_seconds()
