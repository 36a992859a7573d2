"""Sequences of the model: drawn by seed, made shorter by deletion."""

import inspect
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tools.model.play import Play
from tools.model.shrink import shrink
from tools.model.steps import THEMES, Step, same_offsets_sequence, sequence


def test_given_the_same_seed_when_drawn_twice_then_the_steps_are_the_same_and_as_many_as_asked_for() -> None:
    assert sequence(7, 10) == sequence(7, 10)
    assert len(sequence(7, 10)) == 10
    assert sequence(7, 10) != sequence(8, 10)


def test_every_rule_comes_up_and_can_be_carried_out_with_its_arguments() -> None:
    drawn = {step["do"]: step for number in range(300) for step in sequence(number, 25)}

    rules = {name.removeprefix("_do_").replace("_", "-") for name in dir(Play) if name.startswith("_do_")}
    assert drawn.keys() == rules
    for name, step in drawn.items():
        rule = getattr(Play, "_do_" + name.replace("-", "_"))
        inspect.signature(rule).bind(None, **{key: value for key, value in step.items() if key != "do"})


def test_a_sequence_has_some_of_the_rules_and_always_those_that_write_and_copy() -> None:
    drawn = [{step["do"] for step in sequence(number, 200)} for number in range(50)]

    everything = set().union(*drawn)
    assert all({"produce", "run"} <= each for each in drawn)
    assert all(len(each) < len(everything) * 0.75 for each in drawn)
    # As many seeds in a row as there are themes have all rules between them.
    for deal in range(3):
        seeds = range(THEMES * deal + 1, THEMES * (deal + 1) + 1)
        assert {step["do"] for seed in seeds for step in sequence(seed, 400)} == everything


def test_a_sequence_for_the_same_offsets_keeps_to_what_they_allow() -> None:
    drawn = [same_offsets_sequence(number, 60) for number in range(40)]

    assert all(steps[0]["do"] == "settings" and steps[0]["same"] and len(steps) == 60 for steps in drawn)
    refused = {"position", "rename", "first-start", "backfill", "cutover", "failback", "run-back"}
    assert not refused & {step["do"] for steps in drawn for step in steps}
    assert {"crash", "overtake", "transaction", "compact"} <= {step["do"] for steps in drawn for step in steps}


@given(st.lists(st.booleans(), min_size=1, max_size=30).filter(any))
def test_given_a_failure_that_needs_some_steps_when_shrunk_then_exactly_these_are_left(needed: list[bool]) -> None:
    steps: list[Step] = [{"do": "run", "number": number} for number in range(len(needed))]
    wanted = [step for step, is_needed in zip(steps, needed, strict=True) if is_needed]

    def fails(tried: Sequence[Step]) -> bool:
        return all(step in tried for step in wanted)

    assert shrink(steps, fails, seconds=60) == wanted
    assert shrink(steps, fails, seconds=0) == steps
