"""What a cutover would split, from what is known of groups and transactional ids."""

from __future__ import annotations

from mirror_lib.copy.transfer.open_positions import is_own_transactional_id
from mirror_lib.features.cutover.dependencies import Belonging, find_splits, nothing_split

WAVE = {"orders"}


def readers(*topics: str, moving: bool = True, gone: frozenset[str] = frozenset()) -> Belonging:
    return Belonging({"app": frozenset(topics)}, moving=frozenset({"app"} if moving else ()), gone=gone)


def test_a_group_whose_topics_all_move_is_not_split() -> None:
    gate = nothing_split(readers("orders"), WAVE, [])

    assert gate.passed
    assert gate.what == "1 group or transactional id uses the topics; none would be split."


def test_only_topics_of_applications_that_stay_split_something() -> None:
    offsets = frozenset({"orders", "__consumer_offsets"})

    # What stays is nobody's concern; what has moved or comes from the target does not stay.
    assert not find_splits(readers("payments", moving=False), WAVE)
    assert not find_splits(readers("orders", "moved", gone=frozenset({"moved"})), WAVE)
    assert not find_splits(Belonging(written={"t": offsets}), WAVE)


def test_only_whole_names_that_an_operator_has_given_may_be_split() -> None:
    use = readers("orders", "payments")

    assert nothing_split(use, WAVE, ["app"]).passed
    assert nothing_split(use, WAVE, ["a.*"]).passed
    assert not nothing_split(use, WAVE, ["ap"]).passed


def test_what_could_not_be_read_is_told_beside_the_result() -> None:
    use = Belonging(unknown=("the offsets of secret",))

    gate = nothing_split(use, WAVE, [])

    assert gate.passed
    assert gate.what.endswith("Unknown: the offsets of secret.")


def test_own_writers_are_told_from_applications() -> None:
    assert is_own_transactional_id("mirror:A->B:orders-0")
    assert is_own_transactional_id("mirror:A->B#backfill-1:orders-0")
    assert not is_own_transactional_id("mirror:app")
    assert not is_own_transactional_id("billing")
