"""Which of two opposite flows has copied each part of an offset map.

A hand-over gives the failback flow the inverse of the forward flow's map. For that part, the flow's target is the
original log, and its source is the copy: aborted records, broker timestamps and gaps are on the other side. The run id
of each segment preserves that through any number of hand-overs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

_BY_OPPOSITE, _HOME = "way-back-", "home-"


class _Segment(Protocol):
    @property
    def source_first(self) -> int: ...
    @property
    def target_first(self) -> int: ...
    @property
    def run_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class MapPart:
    """A part of a flow's map that one of both flows has copied. It ends where the next part begins."""

    source_first: int
    target_first: int
    #: True if the opposite flow has copied it, from this flow's target to its source.
    by_opposite: bool


def is_by_opposite(run_id: str) -> bool:
    """True if the opposite flow has copied the records of a segment with this run id."""
    return run_id.startswith(_BY_OPPOSITE)


def inverse_run_id(run_id: str, unique: str) -> str:
    """The run id of a segment's inverse, in the map of the opposite flow.

    Args:
        unique: identifies the hand-over.
    """
    return f"{_HOME if is_by_opposite(run_id) else _BY_OPPOSITE}{unique}"


def run_id_in(part: MapPart, run_id: str) -> str:
    """The run id of a segment that replaces others of a part."""
    return f"{_BY_OPPOSITE}{run_id}" if part.by_opposite else run_id


def with_ends(parts: Sequence[MapPart]) -> Iterator[tuple[MapPart, MapPart | None]]:
    """Each part with the next one."""
    yield from zip_longest(parts, parts[1:])


def map_parts(segments: Iterable[_Segment]) -> tuple[MapPart, ...]:
    """The parts of a map whose segments ascend; offsets between two segments belong to the part before."""
    found: list[MapPart] = []
    for each in segments:
        by_opposite = is_by_opposite(each.run_id)
        if not found or found[-1].by_opposite != by_opposite:
            found.append(MapPart(each.source_first, each.target_first, by_opposite))
    return tuple(found)
