"""Where a consumer of the source continues on the target, by the records themselves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.auditing import renumbered, walked
from tests.support.records.logs import log, numbered


@settings(max_examples=300)
@given(st.data())
def test_given_holes_losses_and_repeats_then_every_offset_continues_at_the_next_record_that_was_copied(
    data: st.DataObject,
) -> None:
    numbers = data.draw(st.integers(8, 120))
    source = [replace(each, offset=2 * each.offset + each.offset // 5) for each in numbered(numbers)]
    lost = data.draw(st.sets(st.integers(0, numbers - 1), max_size=5))
    again = data.draw(st.integers(0, numbers - 1))
    kept = [each for number, each in enumerate(source) if number not in lost]
    repeats = [each for each in source[max(again - 3, 0) : again] if each in kept]
    at = kept.index(source[again]) if again not in lost else len(kept)
    target = renumbered([*kept[:at], *repeats, *kept[at:]], 50)
    marks = range(source[-1].offset + 3)

    walk = walked(
        log(source, [5] * numbers), log(target, [3] * numbers), marks=(marks, range(50, target[-1].offset + 2))
    )

    copies: dict[bytes | None, set[int]] = defaultdict(set)
    for each in target:
        copies[each.value].add(each.offset)
    end = target[-1].offset + 1
    found = walk.translation.end(*walk.account.passed, end)
    for mark in marks:
        following = next((each for each in source if each.offset >= mark and each.value in copies), None)
        place = found.exact[mark]
        # Of a record that is there twice, either copy is a place to continue at.
        assert place.offset in ({end} if following is None else copies[following.value])
        assert place.records == place.offset - 50
        assert found.source[mark] == sum(each.offset < mark for each in source)
    assert all(records == mark - 50 for mark, records in found.target.items())
