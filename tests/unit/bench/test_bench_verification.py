"""The measurement of verification: its figures, and the faults that it puts into a copy."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bench.verification import Findings, Result, Speed, _changed, main


@dataclass
class _Message:
    number: int

    def offset(self) -> int:
        return self.number

    def value(self) -> bytes:
        return b"value-%d" % self.number


def _rewritten(partition: int, *, place: int = 2, count: int = 5) -> list[bytes | None]:
    held: dict[int, object] = {}
    messages = [_Message(number) for number in range(count)]
    return [value for message in messages for _, value in _changed(message, partition, place, held)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("partition", "middle"),
    [
        (0, [b"value-1", b"value-!", b"value-3"]),
        (1, [b"value-1", b"value-3"]),
        (2, [b"value-1", b"value-2", b"value-2", b"value-3"]),
        (3, [b"value-1", b"value-3", b"value-2"]),
        (4, [b"value-1", b"value-2", b"value-3"]),
    ],
)
def test_each_of_the_first_partitions_gets_its_own_fault(partition: int, middle: list[bytes]) -> None:
    assert _rewritten(partition) == [b"value-0", *middle, b"value-4"]


def test_a_copy_without_changes_is_as_it_was() -> None:
    assert _rewritten(1, place=-1) == [b"value-%d" % number for number in range(5)]


def test_speed_counts_the_values_of_one_side_and_cpu_time() -> None:
    result = Result("w", Speed(10, 600_000_000, 9.0, 2.0), Speed(10, 600_000_000, 9.0, 7.0))

    assert result.ours.megabytes_per_core == 300
    assert result.ratio == 3.5


def test_what_is_found_besides_spoils_it() -> None:
    expected = ((0, "altered"),)

    assert Findings(10, expected, expected).complete
    assert not Findings(10, expected, (*expected, (1, "missing"))).complete


def test_an_unknown_workload_is_wrong_usage() -> None:
    assert main(["--workloads", "none-such"]) == 2
