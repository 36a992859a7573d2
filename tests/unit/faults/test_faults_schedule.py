"""Which fault comes when."""

from collections import Counter
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from tools.faults.schedule import endless, schedule

_KINDS = ("a", "b", "c", "d")


@given(st.integers(0, 10**6), st.integers(0, 30))
def test_every_kind_comes_once_before_any_comes_again_and_alike_for_the_same_seed(seed: int, faults: int) -> None:
    drawn = list(schedule(_KINDS, seed, faults))

    counts = Counter(drawn)
    assert counts.total() == faults
    assert max(counts.values(), default=0) - min(counts[kind] for kind in _KINDS) <= 1
    assert drawn == list(schedule(_KINDS, seed, faults))


def test_without_a_number_there_is_no_end_and_seeds_give_different_orders() -> None:
    assert len(list(islice(schedule(_KINDS, 1, None), 1000))) == 1000
    assert len({tuple(islice(endless(_KINDS, seed), 12)) for seed in range(20)}) > 10
