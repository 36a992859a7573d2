"""What comes of the rounds of two checkouts."""

from tools.bench.against import Ratio, ratios


def _spent(cpu: float) -> dict[str, float]:
    return {"cpu": cpu, "user": cpu / 2, "system": cpu / 2, "seconds": cpu * 3}


def test_ratios_are_taken_round_by_round() -> None:
    # The machine became slower from round to round, and this checkout took 1.0, 1.1 and 1.5 times as long.
    rounds = [(_spent(1.0), _spent(1.0)), (_spent(2.2), _spent(2.0)), (_spent(6.0), _spent(4.0))]

    found = ratios(rounds)

    assert found["cpu"] == Ratio(1.1, 1.0, 1.5, 1.0, this_seconds=2.2, other_seconds=2.0)
    assert found["seconds"] == Ratio(1.1, 1.0, 1.5, 1.0, this_seconds=6.6, other_seconds=6.0)
