"""Hypothesis strategies for offset maps."""

from __future__ import annotations

from hypothesis import strategies as st

from mirror_lib.offsets.runs import OffsetRun

#: Holes as Kafka makes them: mostly none, then transaction markers, then compaction.
_HOLES = st.one_of(st.just(0), st.just(0), st.just(1), st.integers(0, 9))


@st.composite
def run_lists(
    draw: st.DrawFn, *, min_runs: int = 0, max_runs: int = 8, max_count: int = 12, max_offset: int = 20
) -> tuple[OffsetRun, ...]:
    """Ascending runs, not all of them merged."""
    source = draw(st.integers(0, max_offset))
    target = draw(st.integers(0, max_offset))
    runs = []
    for _ in range(draw(st.integers(min_runs, max_runs))):
        source += draw(_HOLES)
        target += draw(_HOLES)
        count = draw(st.integers(1, max_count))
        runs.append(OffsetRun(source, target, count))
        source += count
        target += count
    return tuple(runs)


def records(runs: tuple[OffsetRun, ...] | list[OffsetRun]) -> list[tuple[int, int]]:
    """Source and target offset of every record, in order."""
    return [(run.source_first + each, run.target_first + each) for run in runs for each in range(run.count)]
