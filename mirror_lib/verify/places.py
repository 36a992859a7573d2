"""The map of a range, walked forward: where a record of the source must stand, and whose place a target offset is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from mirror_lib.offsets.runs import OffsetRun

_SOURCE_FIRST = attrgetter("source_first")
_TARGET_FIRST = attrgetter("target_first")


class Places:
    """Look-ups in a list of runs, quick for offsets that ascend."""

    def __init__(self, runs: Sequence[OffsetRun]) -> None:
        self._runs = runs
        self._near = 0

    def run_of(self, source_offset: int) -> OffsetRun | None:
        """The run that holds a source offset."""
        runs, near = self._runs, self._near
        if near < len(runs) and runs[near].source_first <= source_offset < runs[near].source_next:
            return runs[near]
        after = bisect_right(runs, source_offset, key=_SOURCE_FIRST)
        if after == 0 or source_offset >= runs[after - 1].source_next:
            return None
        self._near = after - 1
        return runs[after - 1]

    def source_of(self, target_offset: int) -> int | None:
        """The source offset whose record the map places at a target offset."""
        after = bisect_right(self._runs, target_offset, key=_TARGET_FIRST)
        if after == 0 or target_offset >= self._runs[after - 1].target_next:
            return None
        run = self._runs[after - 1]
        return run.source_first + target_offset - run.target_first

    def hole_end(self, source_offset: int) -> int | None:
        """For a source offset in no run: the first target offset of the run behind it, None behind the last."""
        after = bisect_right(self._runs, source_offset, key=_SOURCE_FIRST)
        return self._runs[after].target_first if after < len(self._runs) else None
