"""Which fault comes when."""

from collections import Counter
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from faults.schedule import endless, schedule

_KINDS = ("a", "b", "c", "d")


@given(st.integers(0, 10**6), st.integers(0, 30))
def test_the_same_seed_gives_the_same_faults(seed: int, faults: int) -> None:
    assert list(schedule(_KINDS, seed, faults)) == list(schedule(_KINDS, seed, faults))


@given(st.integers(0, 10**6), st.integers(0, 30))
def test_every_kind_comes_once_before_any_comes_again(seed: int, faults: int) -> None:
    counts = Counter(schedule(_KINDS, seed, faults))

    assert counts.total() == faults
    assert max(counts.values(), default=0) - min(counts[kind] for kind in _KINDS) <= 1


def test_without_a_number_there_is_no_end() -> None:
    assert len(list(islice(schedule(_KINDS, 1, None), 1000))) == 1000


def test_different_seeds_give_different_orders() -> None:
    orders = {tuple(islice(endless(_KINDS, seed), 12)) for seed in range(20)}

    assert len(orders) > 10
