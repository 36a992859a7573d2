"""What a planter writes, and what an audit must then find: by examples and by an own reading of what was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.trials.damage import Changed, Damage, Extra, Missing, Plan, Reordered, Repeated, plan
from tools.trials.model import Finding, Kind, Offsets

_COUNT = 40
#: The place of each kind of damage among the records, so that they do not meet.
_SLOTS = 5


def at(first: int, last: int) -> Offsets:
    return Offsets(0, first, last)


def written(planned: Plan) -> list[tuple[int | None, Kind | None]]:
    """The records of the target in their order: offset on the source and fault."""
    return [
        (None if piece.source is None else piece.source + number, piece.kind)
        for piece in planned.pieces
        for number in range(piece.count)
    ]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (Missing(0, 0), Finding(Kind.MISSING, 1, at(0, 0))),
        (Missing(30, 39), Finding(Kind.MISSING, 10, at(30, 39))),
        (Repeated(10, 12, 12), Finding(Kind.REPEATED, 3, at(10, 12), at(13, 15))),
        (Repeated(0, 0, 39), Finding(Kind.REPEATED, 1, at(0, 0), at(40, 40))),
        (Reordered(5, 5, 6), Finding(Kind.REORDERED, 1, at(5, 5), at(6, 6))),
        (Reordered(10, 11, 20), Finding(Kind.REORDERED, 2, at(10, 11), at(19, 20))),
        (Changed(7, 8, "key"), Finding(Kind.CHANGED, 2, at(7, 8), at(7, 8), ("key",))),
        (Extra(-1), Finding(Kind.EXTRA, 1, None, at(0, 0))),
        (Extra(39, 3), Finding(Kind.EXTRA, 3, None, at(40, 42))),
    ],
)
def test_one_fault_is_expected_at_its_offsets(damage: Damage, expected: Finding) -> None:
    planned = plan(0, _COUNT, [damage])

    assert planned.findings() == (expected,)
    assert planned.records == len(written(planned))


def test_faults_shift_the_target_offsets_of_those_behind_them() -> None:
    planned = plan(0, _COUNT, [Missing(3, 4), Extra(9), Changed(20, 20, "value"), Repeated(25, 25, 30)])

    assert planned.findings() == (
        Finding(Kind.CHANGED, 1, at(20, 20), at(19, 19), ("value",)),
        Finding(Kind.EXTRA, 1, None, at(8, 8)),
        Finding(Kind.MISSING, 2, at(3, 4)),
        Finding(Kind.REPEATED, 1, at(25, 25), at(30, 30)),
    )
    assert (planned.records, planned.equal) == (40, 37)


def test_damage_to_other_partitions_changes_nothing() -> None:
    planned = plan(1, _COUNT, [Missing(3, 4), Extra(9)])

    assert (planned.findings(), planned.equal) == ((), _COUNT)


@pytest.mark.parametrize(
    "damage",
    [
        [Missing(3, 5), Changed(5, 5, "value")],
        [Missing(39, 40)],
        [Extra(40)],
    ],
)
def test_damage_that_meets_or_is_outside_of_the_records_is_refused(damage: list[Damage]) -> None:
    with pytest.raises(ValueError, match=r"several faults|outside"):
        plan(0, _COUNT, damage)


def test_among_equal_records_only_their_run_is_expected() -> None:
    (finding,) = plan(0, _COUNT, [Missing(13, 13)]).findings(among_equal=8)

    assert finding == Finding(Kind.MISSING, 1, at(8, 15), within=True)


@st.composite
def damages(draw: st.DrawFn) -> list[Damage]:
    """Faults in slots of eight records each, so that none meets another."""
    found: list[Damage] = []
    for slot in range(_SLOTS):
        start = slot * 8
        first = start + draw(st.integers(0, 2))
        last = first + draw(st.integers(0, 2))
        behind = last + draw(st.integers(1, 2))
        kinds: list[Damage] = [
            Missing(first, last),
            Repeated(first, last, last),
            Repeated(first, last, behind),
            Reordered(first, last, behind),
            Changed(first, last, "value"),
            Extra(first, last - first + 1),
        ]
        found += draw(st.lists(st.sampled_from(kinds), max_size=1))
    return draw(st.permutations(found))


@given(damages())
def test_what_is_expected_is_what_is_written(damage: list[Damage]) -> None:
    planned = plan(0, _COUNT, damage)
    target = written(planned)
    places = {
        kind: {
            (each.source and each.source.first, each.target and each.target.first)
            for finding in planned.findings()
            if finding.kind is kind
            for each in finding.single()
        }
        for kind in Kind
    }

    sources = [source for source, _ in target]
    assert places[Kind.MISSING] == {(each, None) for each in range(_COUNT) if each not in sources}
    assert places[Kind.EXTRA] == {(None, place) for place, source in enumerate(sources) if source is None}
    assert places[Kind.REPEATED] == {
        (source, place) for place, source in enumerate(sources) if source is not None and source in sources[:place]
    }
    # Those that are moved are what is out of order among the first copies of each record.
    moved = {source for source, _ in places[Kind.REORDERED]}
    first_copies = [source for source in dict.fromkeys(sources) if source is not None and source not in moved]
    assert first_copies == sorted(first_copies)
    assert all(sources[place] == source for source, place in places[Kind.REORDERED] if place is not None)
    assert planned.equal == len(target) - sum(len(found) for kind, found in places.items() if kind is not Kind.MISSING)
