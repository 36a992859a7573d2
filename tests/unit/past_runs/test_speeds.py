"""Speeds of writing and copying from what was seen."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.forecast.rates import Demand, SeenEnd, run_interval, shared_rates, write_rate
from mirror_lib.ledger.queries.copy_rounds import CopiedRound
from mirror_lib.past_runs.speeds import copy_speed


def copied(records: int, size: int, seconds: float) -> CopiedRound:
    return CopiedRound("r", datetime.now(UTC), records, size, seconds, size / seconds / 2, records / seconds / 2)


def test_the_fastest_of_the_rounds_that_were_large_enough_counts_and_the_usual_time_between_runs() -> None:
    found = copy_speed([copied(1_000, 1_000_000, 4.0), copied(8_000, 4_000_000, 4.0), copied(500, 90_000, 0.01)])

    assert (found.records_per_second, found.bytes_per_second, found.at_least) == (2_000, 1_000_000, False)
    assert (found.partition_records_per_second, found.partition_bytes_per_second) == (1_000, 500_000)

    # Small rounds tell only what is reached at least.
    small = copy_speed([copied(10, 1_000, 0.5)])
    assert (small.records_per_second, small.at_least) == (20, True)
    assert copy_speed([]) is copy_speed([copied(0, 0, 1.0)]) is None

    # One run that was missed does not move the usual time between runs.
    assert run_interval([0.0, 300.0, 601.0, 900.0, 9_000.0]) == pytest.approx(300.5)
    assert run_interval([5.0]) is None


def test_each_partition_keeps_up_and_shares_the_rest_by_what_it_has_outstanding() -> None:
    rates = shared_rates({"a": Demand(300, 10), "b": Demand(100, 50)}, 100, 1_000)
    assert rates == {"a": pytest.approx(10 + 30), "b": pytest.approx(50 + 10)}

    # 400 a second are written, and 100 a second would copy what is outstanding: a fifth of all is granted.
    rates = shared_rates({"a": Demand(1, 100), "b": Demand(3, 300), "still": Demand(4, 0)}, 100, 1_000)
    assert rates == {"a": pytest.approx(22.5), "b": pytest.approx(67.5), "still": pytest.approx(10)}

    # A single partition goes no faster than single partitions did.
    assert shared_rates({"a": Demand(1_000, 0)}, 100, 30) == {"a": 30}


@given(
    st.dictionaries(
        st.integers(0, 50),
        st.builds(Demand, st.floats(1, 1e9), st.just(0.0) | st.floats(0.001, 1e6)),
        min_size=1,
        max_size=20,
    ),
    st.floats(1, 1e9),
)
def test_no_more_is_dealt_out_than_there_is(demands: dict[int, Demand], speed: float) -> None:
    assert sum(shared_rates(demands, speed, speed).values()) <= speed * (1 + 1e-9)


HOUR, TEN_MINUTES = 3_600.0, 600.0


def windows(hour: int, ten_minutes: int) -> list[SeenEnd]:
    return [SeenEnd(HOUR, hour), SeenEnd(TEN_MINUTES, ten_minutes)]


def rate(by_time: list[SeenEnd], recorded: SeenEnd | None = None, *, append_time: bool = False) -> float | None:
    return write_rate(1_000, 10_000, by_time=by_time, recorded=recorded, append_time=append_time)


def test_ends_that_a_run_noted_lately_are_believed_before_times_of_producers() -> None:
    # The busier of both windows counts.
    assert rate(windows(6_400, 9_400)) == 1.0
    assert rate(windows(6_400, 8_800)) == 2.0

    noted = SeenEnd(1_800, 8_200)
    assert rate(windows(6_400, 9_400), noted) == 1.0
    assert rate(windows(1_000, 1_000), noted) == 1.0, "clocks that are ahead make all records look new"
    assert rate(windows(10_000, 10_000), noted) == 1.0, "copies of old records look as if nothing were written"
    # Times of the broker are believed.
    assert rate(windows(10_000, 10_000), SeenEnd(1_800, 1_000), append_time=True) == 0

    # Times that say nothing leave the ledger or nothing.
    for by_time in (windows(10_000, 10_000), windows(1_000, 1_000), []):
        assert rate(by_time) is None
        assert rate(by_time, SeenEnd(100_000, 0)) == 0.1
    assert rate([], SeenEnd(1_800, 20_000)) is None, "the log was longer once"
