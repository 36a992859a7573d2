"""The comparison of what an audit found with what is expected."""

from __future__ import annotations

from typing import Any

import pytest

from tools.trials.all_trials import choose
from tools.trials.model import Expected, Finding, Found, Kind, Offsets, differences, joined


def at(first: int, last: int, partition: int = 0) -> Offsets:
    return Offsets(partition, first, last)


_ONE = Finding(Kind.MISSING, 1, at(7, 7))


def test_equal_results_do_not_differ() -> None:
    assert differences(Expected((_ONE,), equal=9), Found(3, (_ONE,), equal=9)) == []
    assert differences(Expected(), Found(0, equal=5)) == []


def test_how_ranges_are_divided_makes_no_difference() -> None:
    parts = (Finding(Kind.REPEATED, 2, at(3, 4), at(13, 14)), Finding(Kind.REPEATED, 1, at(5, 5), at(15, 15)))
    whole = Finding(Kind.REPEATED, 3, at(3, 5), at(13, 15))

    assert joined(parts) == joined([whole]) == [whole]


def test_a_block_that_comes_three_times_is_two_repeats_of_it() -> None:
    both = Finding(Kind.REPEATED, 4, at(3, 4), at(5, 8))

    assert joined([both]) == [
        Finding(Kind.REPEATED, 2, at(3, 4), at(5, 6)),
        Finding(Kind.REPEATED, 2, at(3, 4), at(7, 8)),
    ]


@pytest.mark.parametrize(
    "found",
    [
        Found(3, (Finding(Kind.MISSING, 1, at(8, 8)),), equal=9),
        Found(3, (Finding(Kind.MISSING, 1, at(7, 7, partition=1)),), equal=9),
        Found(3, (_ONE, Finding(Kind.EXTRA, 1, None, at(1, 1))), equal=9),
        Found(0, (), equal=9),
        Found(1, (_ONE,), equal=9),
        Found(3, (_ONE,), equal=8),
        Found(3, (_ONE,), equal=9, by_key=True),
        Found(3, (_ONE,), equal=9, times_compared=False),
    ],
)
def test_every_difference_is_named(found: Found) -> None:
    assert differences(Expected((_ONE,), equal=9), found)


@pytest.mark.parametrize(("offset", "number"), [(8, 0), (15, 0), (16, 3)])
def test_among_equal_records_any_of_them_is_right(offset: int, number: int) -> None:
    expected = Expected((Finding(Kind.MISSING, 1, at(8, 15), within=True),))

    found = differences(expected, Found(3, (Finding(Kind.MISSING, 1, at(offset, offset)),)))

    assert bool(found) is bool(number)


@pytest.mark.parametrize(
    ("kinds", "code"), [((), 0), ((Kind.UNVERIFIABLE,), 1), ((Kind.UNVERIFIABLE, Kind.EXTRA), 3), ((Kind.CHANGED,), 3)]
)
def test_the_exit_code_follows_from_the_kinds(kinds: tuple[Kind, ...], code: int) -> None:
    assert Expected(tuple(Finding(each, 1, at(0, 0)) for each in kinds)).exit_code == code


def test_the_report_of_the_command_is_read() -> None:
    offsets = {"partition": 2, "first_offset": 7, "last_offset": 9}
    finding: dict[str, Any] = {"kind": "changed", "records": 3, "source": offsets, "target": offsets, "parts": ["key"]}
    partition = {"findings": [finding], "by_key": False, "times_compared": True, "why": ""}

    found = Found.of({"exit_code": 3, "equal": 5, "partitions": [partition]})

    assert found == Found(3, (Finding(Kind.CHANGED, 3, at(7, 9, 2), at(7, 9, 2), ("key",)),), 5)


def test_names_of_trials_are_unique_and_there_are_enough_of_each_kind() -> None:
    trials = choose(large=True)
    planted = [each.name.partition(":")[0] for each in choose(kinds="planted")]

    assert len({(each.name, each.by) for each in trials}) == len(trials)
    assert len(choose(kinds="clean")) >= 20
    assert all(planted.count(kind) >= 4 for kind in ("missing", "repeated", "reordered", "changed", "extra"))
    assert sum(each.by == "MM2" for each in choose(kinds="planted")) >= 5
