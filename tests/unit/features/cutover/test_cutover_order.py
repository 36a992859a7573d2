"""In which order a cutover goes, and what its definition allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.cutover.model import Attempt, CutoverDefinition, Fence, Gate, Step, StepState, Style
from mirror_lib.features.cutover.order import (
    RELEASING,
    STEPS,
    comes_before,
    is_released,
    last_attempts,
    writers_stood_still,
)
from mirror_lib.features.cutover.records import attempt_of, step_row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def attempt(step: Step, state: StepState = StepState.PASSED, number: int = 1, ended: float = 1.0) -> Attempt:
    return Attempt(
        step=step,
        number=number,
        state=state,
        by="ann",
        started_at=NOON,
        finished_at=None if state is StepState.RUNNING else NOON + timedelta(seconds=ended),
        gates=(Gate("lag", True, "nothing is left."),),
    )


def passed(steps: Sequence[Step]) -> list[Attempt]:
    return [attempt(step) for step in steps]


def test_every_style_takes_every_step_once_and_releases_when_everything_was_compared_and_agreed_on() -> None:
    for style in Style:
        assert sorted(STEPS[style]) == sorted(Step), style
        for step in (Step.FREEZE, Step.DRAIN, Step.VERIFY, Step.APPROVE, Step.SWITCH):
            assert comes_before(style, step, Step.RELEASE), (style, step)


def test_readers_move_before_writers_stop_or_after_writers_went_as_the_style_says() -> None:
    assert comes_before(Style.CONSUMERS_FIRST, Step.TRANSLATE, Step.FREEZE)
    assert comes_before(Style.TOGETHER, Step.VERIFY, Step.TRANSLATE)
    assert comes_before(Style.TOGETHER, Step.TRANSLATE, Step.APPROVE)
    assert comes_before(Style.PRODUCERS_FIRST, Step.RELEASE, Step.TRANSLATE)


def test_only_the_newest_attempt_at_a_step_counts() -> None:
    attempts = [attempt(Step.DRAIN, number=2), attempt(Step.DRAIN, StepState.FAILED, number=1)]

    assert last_attempts(attempts)[Step.DRAIN].number == 2


def test_somebody_may_have_written_as_soon_as_the_first_grant_was_tried() -> None:
    assert not is_released(passed([Step.SWITCH]))
    for state in (StepState.RUNNING, StepState.FAILED, StepState.PASSED):
        began = replace(attempt(Step.RELEASE, state), facts={RELEASING: True})
        assert is_released([began]), state
        assert not is_released([attempt(Step.RELEASE, state)]), state
        assert not is_released([replace(began, state=StepState.UNDONE)]), state


def test_writers_stand_still_from_the_word_to_their_rights_on_the_target() -> None:
    attempts = [attempt(Step.FREEZE, ended=10), attempt(Step.RELEASE, ended=31.5)]

    assert writers_stood_still(attempts) == 21.5
    assert writers_stood_still(attempts[:1]) is None


def test_a_definition_comes_back_from_the_ledger_as_it_was() -> None:
    definition = CutoverDefinition(
        name="wave-1", flow="a->b", topics=("orders", "pay.*"), style=Style.PRODUCERS_FIRST, max_duplicates=7
    )

    assert CutoverDefinition.from_dict(definition.to_dict()) == definition
    assert CutoverDefinition.from_dict({**definition.to_dict(), "of_a_later_version": 1}) == definition


def test_what_cannot_be_a_cutover_is_refused_by_name() -> None:
    usable: dict[str, object] = {"name": "wave-1", "flow": "a->b", "topics": ("orders",)}
    refusals: list[tuple[dict[str, object], str]] = [
        ({"name": ""}, "name"),
        ({"name": "a/b"}, "a/b"),
        ({"topics": ()}, "topics"),
        ({"topics": ("(",)}, "regular expression"),
        ({"groups": ("[",)}, "regular expression"),
        ({"quiet_seconds": -1.0}, "quiet_seconds"),
        ({"max_lag": -1}, "max_lag"),
        ({"fence": Fence.ACL}, "principals of the writers"),
    ]
    for changed, named in refusals:
        with pytest.raises(ConfigurationError, match=named):
            CutoverDefinition(**{**usable, **changed})  # type: ignore[arg-type]


def test_an_attempt_comes_back_from_the_ledger_as_it_was() -> None:
    made = attempt(Step.VERIFY, StepState.FAILED, number=3)

    assert attempt_of(step_row("wave-1", made)) == made
