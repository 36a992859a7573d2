"""What a round is expected to cost, from what earlier rounds cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.forecast.costs import CostModel
from mirror_lib.ledger.rows import RoundRow
from mirror_lib.past_runs.costs import BinSize, accuracy, expect_round
from tests.support.ledger.rows import round_row

MB = 1_000_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def measured(heaviest: int, seconds: float, *, beside: float = 0.0, tasks: int = 1, **more: Any) -> RoundRow:
    """A round of so many bytes for each task, in so many seconds of which some are not copying."""
    return round_row(
        "r",
        **{
            "began_at": NOW,
            "planning_seconds": 1.0,
            "opening_seconds": beside,
            "copying_seconds": seconds - beside,
            "tasks": tasks,
            "bytes": heaviest * tasks,
            "heaviest_bytes": heaviest,
            "planned_records": 1_000,
            "planned_bytes": heaviest * tasks,
            "committed_at": NOW + timedelta(seconds=seconds),
            **more,
        },
    )


def expected_seconds(rounds: list[RoundRow], heaviest: int, tasks: int = 1) -> float:
    return expect_round([BinSize(heaviest)] * tasks, rounds).seconds


sizes = st.integers(1, 10**12)
durations = st.floats(0.001, 10**5)
histories = st.lists(st.builds(measured, sizes, durations, tasks=st.integers(1, 16)), min_size=1, max_size=12)


class TestGivenRoundsOnOneLine:
    @given(
        fixed=st.floats(0, 60),
        rate=st.floats(10**3, 10**10),
        loads=st.lists(st.integers(1, 10**6), min_size=2, max_size=10, unique=True),
        asked=st.integers(1, 10**6),
    )
    def test_overhead_and_rate_are_found(self, fixed: float, rate: float, loads: list[int], asked: int) -> None:
        scale = round(rate)
        rounds = [measured(load * scale, fixed + load * scale / rate) for load in loads]
        asked = min(asked, max(loads) * 10)

        seconds = expected_seconds(rounds, asked * scale)

        assert seconds == pytest.approx(fixed + asked * scale / rate, rel=1e-3, abs=1e-3)

    def test_a_single_round_on_a_busy_machine_does_not_bend_it(self) -> None:
        rounds = [measured(size * MB, 5 + size) for size in (10, 20, 30, 40, 50, 60, 70)]
        rounds[3] = measured(40 * MB, 500.0)

        assert expected_seconds(rounds, 100 * MB) == pytest.approx(105, rel=0.05)

    def test_the_newest_rounds_weigh_most(self) -> None:
        now = [measured(size * MB, size / 2) for size in (10, 30, 20, 40, 50)]
        before = [measured(size * MB, size * 2.0) for size in (10, 30, 20, 40, 50, 60)]

        assert expected_seconds([*now, *before], 40 * MB) == pytest.approx(20, rel=0.1)

    def test_rounds_with_as_many_tasks_weigh_more_than_others(self) -> None:
        """More tasks share the same brokers: each of them is slower."""
        alike = [measured(size * MB, float(size), tasks=8) for size in (10, 20, 30)]
        others = [measured(size * MB, size / 4, tasks=1) for size in (10, 20, 30)]
        mixed = [each for pair in zip(others, alike, strict=True) for each in pair]

        assert expected_seconds(mixed, 20 * MB, tasks=8) == pytest.approx(20, rel=0.1)


class TestGivenLittleExperience:
    def test_without_any_round_the_sizes_of_the_logs_are_all_that_is_known(self) -> None:
        expected = expect_round([BinSize(3 * MB), BinSize(4 * MB)], [])
        assert (expected.bytes, expected.seconds, expected.rounds) == (7 * MB, None, 0)

        unsized = expect_round([BinSize(3 * MB), BinSize(0, unsized_offsets=10)], [])
        assert (unsized.bytes, unsized.seconds) == (None, None)
        # Rounds that copied nothing tell nothing.
        assert CostModel.fit([measured(0, 3.0)], tasks=1) is None

    def test_of_one_round_what_is_not_copying_is_taken_as_fixed(self) -> None:
        rounds = [measured(100 * MB, 12.0, beside=2.0)]

        assert expected_seconds(rounds, 100 * MB) == pytest.approx(12)
        assert expected_seconds(rounds, 200 * MB) == pytest.approx(22)
        assert expected_seconds(rounds, 0) == pytest.approx(2)

    def test_much_more_than_was_ever_copied_goes_by_the_best_speed_and_says_so(self) -> None:
        rounds = [measured(MB, 1.0), measured(2 * MB, 1.9), measured(MB, 1.1)]

        expected = expect_round([BinSize(1_000 * MB)], rounds)

        assert expected.beyond_experience
        assert expected.task_bytes_per_second == pytest.approx(2 * MB / 1.9)

    def test_larger_rounds_that_took_less_time_tell_no_line(self) -> None:
        rounds = [measured(10 * MB, 4.0, beside=1.0), measured(20 * MB, 3.0, beside=1.0)]

        assert expected_seconds(rounds, 20 * MB) >= 1.0


class TestGivenAnyHistory:
    @given(histories, st.lists(sizes, min_size=1, max_size=8))
    def test_nothing_expected_is_below_zero(self, rounds: list[RoundRow], bins: list[int]) -> None:
        expected = expect_round([BinSize(size) for size in bins], rounds)

        assert None not in (expected.seconds, expected.bytes, expected.fixed_seconds)
        assert min(expected.seconds or 0, expected.bytes or 0, expected.fixed_seconds or 0) >= 0

    @given(histories, sizes, sizes)
    def test_more_to_copy_never_takes_less_time_within_experience(
        self, rounds: list[RoundRow], size: int, other: int
    ) -> None:
        known = max(each.heaviest_bytes for each in rounds)
        smaller, larger = sorted((min(size, known), min(other, known)))

        assert expected_seconds(rounds, smaller) <= expected_seconds(rounds, larger) * (1 + 1e-9)

    @given(histories, sizes, st.sampled_from([1_000, 1_024, 2]))
    def test_other_units_of_bytes_change_no_second(self, rounds: list[RoundRow], size: int, unit: int) -> None:
        scaled = [
            replace(
                each,
                bytes=each.bytes * unit,
                heaviest_bytes=each.heaviest_bytes * unit,
                planned_bytes=each.bytes * unit,
            )
            for each in rounds
        ]

        assert expected_seconds(scaled, size * unit) == pytest.approx(expected_seconds(rounds, size), rel=1e-6)

    @given(histories, sizes, st.sampled_from([0.5, 2.0, 1024.0]))
    def test_a_machine_so_many_times_slower_takes_so_many_times_longer(
        self, rounds: list[RoundRow], size: int, slower: float
    ) -> None:
        scaled = [
            replace(each, opening_seconds=each.opening_seconds * slower, copying_seconds=each.copying_seconds * slower)
            for each in rounds
        ]

        assert expected_seconds(scaled, size) == pytest.approx(expected_seconds(rounds, size) * slower, rel=1e-6)


class TestExpectedBytes:
    def test_what_logs_hold_beside_records_is_learned(self) -> None:
        """Transaction markers and aborted records take room in the log and are not copied."""
        rounds = [measured(50 * MB, 1.0, planned_bytes=100 * MB), measured(40 * MB, 1.0, planned_bytes=80 * MB)]

        assert expect_round([BinSize(30 * MB), BinSize(10 * MB)], rounds).bytes == 20 * MB

    def test_where_sizes_are_not_told_offsets_tell_them(self) -> None:
        rounds = [measured(50 * MB, 1.0, planned_records=1_000_000, planned_bytes=None)]

        assert expect_round([BinSize(0, unsized_offsets=2_000)], rounds).bytes == 100_000

    def test_a_round_lasts_as_long_as_its_heaviest_bin(self) -> None:
        rounds = [measured(size * MB, float(size)) for size in (10, 20, 30)]

        expected = expect_round([BinSize(2 * MB), BinSize(25 * MB), BinSize(3 * MB)], rounds)

        assert expected.bytes == 30 * MB
        assert expected.seconds == pytest.approx(25)


class TestAccuracy:
    def test_it_is_what_was_by_what_was_expected(self) -> None:
        rounds = [
            measured(10 * MB, 4.0, expected_seconds=2.0, expected_bytes=10 * MB),
            measured(10 * MB, 5.0, expected_seconds=5.0, expected_bytes=20 * MB),
            measured(10 * MB, 1.0, expected_seconds=5.0, expected_bytes=5 * MB),
        ]

        good = accuracy(rounds)

        assert (good.rounds, good.seconds, good.bytes) == (3, 1.0, 1.0)
        assert good.worst_seconds == pytest.approx(0.2)

    def test_rounds_of_which_nothing_was_expected_and_unfinished_ones_do_not_count(self) -> None:
        assert accuracy([measured(MB, 1.0), measured(MB, 1.0, expected_seconds=1.0, committed_at=None)]) is None
