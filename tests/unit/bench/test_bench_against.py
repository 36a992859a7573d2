"""What comes of the rounds of two checkouts."""

from pathlib import Path

import pytest

from bench.against import Ratio, main, ratios


def _spent(cpu: float) -> dict[str, float]:
    return {"cpu": cpu, "user": cpu / 2, "system": cpu / 2, "seconds": cpu * 3}


def test_ratios_are_taken_round_by_round() -> None:
    # The machine became slower from round to round, and this checkout took 1.0, 1.1 and 1.5 times as long.
    rounds = [(_spent(1.0), _spent(1.0)), (_spent(2.2), _spent(2.0)), (_spent(6.0), _spent(4.0))]

    found = ratios(rounds)

    assert found["cpu"] == Ratio(1.1, 1.0, 1.5, 1.0, this_seconds=2.2, other_seconds=2.0)
    assert found["seconds"] == Ratio(1.1, 1.0, 1.5, 1.0, this_seconds=6.6, other_seconds=6.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workloads", "nope"), "no such workload: nope"),
        (("--set", "tasks.max"), "not KEY=VALUE: tasks.max"),
    ],
)
def test_what_is_not_known_is_named_and_ends_with_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err
