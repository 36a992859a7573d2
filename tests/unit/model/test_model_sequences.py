"""Sequences of the model: drawn by seed, made shorter by deletion."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from model.shrink import shrink
from model.steps import Step, sequence


def test_given_the_same_seed_when_drawn_twice_then_the_steps_are_the_same_and_as_many_as_asked_for() -> None:
    assert sequence(7, 10) == sequence(7, 10)
    assert len(sequence(7, 10)) == 10
    assert sequence(7, 10) != sequence(8, 10)


@given(st.lists(st.booleans(), min_size=1, max_size=30).filter(any))
def test_given_a_failure_that_needs_some_steps_when_shrunk_then_exactly_these_are_left(needed: list[bool]) -> None:
    steps: list[Step] = [{"do": "run", "number": number} for number in range(len(needed))]
    wanted = [step for step, is_needed in zip(steps, needed, strict=True) if is_needed]

    def fails(tried: Sequence[Step]) -> bool:
        return all(step in tried for step in wanted)

    assert shrink(steps, fails, seconds=60) == wanted


def test_given_no_time_when_shrunk_then_the_sequence_stays_as_it_is() -> None:
    steps: list[Step] = [{"do": "run"}, {"do": "groups"}]

    assert shrink(steps, lambda _: True, seconds=0) == steps
