"""Which ranges a sample of a partition has."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.audit.sampling import Sample
from mirror_lib.topology.names import TopicPartition

_PARTITION = TopicPartition("orders", 3)


@given(st.floats(0.0001, 1.0), st.integers(0, 1 << 31), st.integers(0, 1 << 40), st.integers(1, 1 << 40))
def test_ranges_are_apart_and_as_long_as_the_share_and_one_is_the_end(
    share: float, seed: int, first: int, offsets: int
) -> None:
    end = first + offsets

    ranges = Sample(share, seed).ranges(_PARTITION, first, end)

    assert first <= ranges[0][0]
    assert ranges[-1][1] == end
    assert all(start < stop for start, stop in ranges)
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))
    length = sum(stop - start for start, stop in ranges)
    wanted = min(max(share * offsets, 2_000), offsets)
    assert abs(length - wanted) <= max(5, wanted * 1e-6)


def test_the_seed_and_the_partition_decide() -> None:
    def ranges(seed: int, partition: int) -> tuple[tuple[int, int], ...]:
        return Sample(0.01, seed).ranges(TopicPartition("orders", partition), 0, 10_000_000)

    assert ranges(1, 0) == ranges(1, 0)
    assert len({ranges(1, 0), ranges(2, 0), ranges(1, 1)}) == 3


def test_an_empty_partition_has_none() -> None:
    assert Sample(0.5, 1).ranges(_PARTITION, 7, 7) == ()
