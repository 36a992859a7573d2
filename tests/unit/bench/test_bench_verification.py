"""The measurement of verification: its figures, and the faults that it puts into a copy."""

from __future__ import annotations

from dataclasses import dataclass

from tools.bench.verification import Findings, Result, Speed, _changed


@dataclass
class _Message:
    number: int

    def offset(self) -> int:
        return self.number

    def value(self) -> bytes:
        return b"value-%d" % self.number


def _rewritten(partition: int, *, place: int = 2) -> str:
    held: dict[int, object] = {}
    messages = [_Message(number) for number in range(5)]
    values = [value for message in messages for _, value in _changed(message, partition, place, held)]  # type: ignore[arg-type]
    return "".join((value or b"").decode().removeprefix("value-") for value in values)


def test_each_of_the_first_partitions_gets_its_own_fault() -> None:
    assert [_rewritten(partition) for partition in range(5)] == ["01!34", "0134", "012234", "01324", "01234"]
    assert _rewritten(1, place=-1) == "01234"


def test_speed_counts_the_values_of_one_side_and_cpu_time() -> None:
    result = Result("w", Speed(10, 600_000_000, 9.0, 2.0), Speed(10, 600_000_000, 9.0, 7.0))

    assert result.ours.megabytes_per_core == 300
    assert result.ratio == 3.5


def test_a_finding_that_was_not_planted_spoils_the_result() -> None:
    expected = ((0, "altered"),)

    assert Findings(10, expected, expected).complete
    assert not Findings(10, expected, (*expected, (1, "missing"))).complete
