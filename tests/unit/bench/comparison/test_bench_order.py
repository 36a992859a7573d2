"""Who copies first: caches and compilers favour whoever follows."""

from tools.bench.comparison.measure import order
from tools.bench.copiers.settings import Copier


def test_another_copier_begins_each_time() -> None:
    copiers = tuple(Copier)
    orders = [order(copiers, turn) for turn in range(8)]

    assert orders[0] == copiers == orders[4]
    for place in range(4):
        assert sorted(found[place] for found in orders[:4]) == sorted(copiers)
    assert order((Copier.MIRROR,), 5) == (Copier.MIRROR,)
