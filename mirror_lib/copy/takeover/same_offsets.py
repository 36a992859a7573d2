"""Find how far a copy with the same offsets came: each record of the target is at the offset of its source record.

Unlike the tail of another copy (`tail_match`), nothing has to be guessed: whatever the target has at an offset is
compared with what the source has there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from mirror_lib.cluster.topics.position_format import OmittedRange
from mirror_lib.copy.takeover.tail_match import MismatchError, TailMatch, print_of
from mirror_lib.offsets.runs import RunBuilder
from mirror_lib.records.spans import Span

#: Reads the spans of a log from an offset on; none at its end.
Read = Callable[[int], Awaitable[Sequence[Span]]]
_Print = tuple[bytes, int]


async def match_by_offset(
    read_source: Read,
    read_target: Read,
    first: int,
    end: int,
    *,
    source_offset: int,
    skipped: Sequence[OmittedRange] = (),
) -> TailMatch:
    """Compare the records of both logs at [first, end).

    A record that only one side has may have been compacted away on the other one; a marker may not have its place.

    Args:
        source_offset: the source offset before which all is on the target, or rightly dropped.
        skipped: ranges of source offsets that the earlier writer has skipped.

    Raises:
        MismatchError: other records, or a marker in the place of one.
    """
    runs, records, unknown, offset = RunBuilder(), 0, 0, first
    while offset < end:
        target = await read_target(offset)
        if not target:
            break
        stop = min(target[-1].next_offset, end)
        there, hidden, retimed = _prints(target, offset, stop)
        here = await _source_prints(read_source, offset, stop)
        for place in sorted(there.keys() | here.keys()):
            mine, theirs = here.get(place), there.get(place)
            if theirs is None:
                is_lost = any(start <= place < after for start, after in hidden)
                if is_lost and not any(each.first_offset <= place < each.next_offset for each in skipped):
                    raise MismatchError(place, place)
            elif mine is None:
                unknown += 1
            elif mine[0] != theirs[0] or (mine[1] != theirs[1] and not retimed):
                raise MismatchError(place, place)
            else:
                runs.add(place, place, 1)
                records += 1
        offset = stop
    return TailMatch(max(source_offset, end), records, unknown, runs.runs())


def _prints(spans: Iterable[Span], first: int, end: int) -> tuple[dict[int, _Print], list[tuple[int, int]], bool]:
    """Prints of records by offset, ranges that no consumer sees, and whether the broker set timestamps."""
    found: dict[int, _Print] = {}
    hidden: list[tuple[int, int]] = []
    retimed = False
    for span in spans:
        if span.is_hidden:
            hidden.append((max(span.first, first), min(span.next_offset, end)))
            continue
        retimed |= span.log_append_time
        found.update((each.offset, print_of(each)) for each in span.records() if first <= each.offset < end)
    return found, hidden, retimed


async def _source_prints(read: Read, first: int, end: int) -> dict[int, _Print]:
    found: dict[int, _Print] = {}
    offset = first
    while offset < end:
        spans = await read(offset)
        if not spans:
            break
        found.update(_prints(spans, offset, end)[0])
        offset = spans[-1].next_offset
    return found
