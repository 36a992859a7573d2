"""The lag of records by the headers of their batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tools.bench.lag.arrivals import Arrival, Lag, LagHistogram


def _batch(*, at: int, records: int = 1, first: int, last: int | None = None) -> Arrival:
    return Arrival(at, 0, records, first, first if last is None else last)


def test_records_of_a_batch_are_spread_between_the_times_of_its_oldest_and_newest() -> None:
    histogram = LagHistogram()

    histogram.add(_batch(at=1_100, records=11, first=1_000, last=1_100))

    assert sorted(histogram.counts.items()) == [(lag, 1) for lag in range(0, 101, 10)]
    assert histogram.percentile(50) == 0.05
    assert histogram.percentile(100) == 0.1


@given(st.integers(1, 300), st.integers(0, 200), st.integers(-50, 500))
def test_no_record_is_lost_and_none_lies_outside_its_batch(records: int, span: int, wait: int) -> None:
    histogram = LagHistogram()

    histogram.add(_batch(at=10_000 + span + wait, records=records, first=10_000, last=10_000 + span))

    assert histogram.records == records
    assert min(histogram.counts) >= max(wait, 0)
    assert max(histogram.counts) <= max(span + wait, 0)


def test_a_percentile_is_a_lag_that_this_share_of_the_records_did_not_exceed() -> None:
    histogram = LagHistogram()
    histogram.add(_batch(at=1_010, records=99, first=1_000))
    histogram.add(_batch(at=4_000, records=1, first=1_000))

    assert (histogram.percentile(50), histogram.percentile(99), histogram.percentile(100)) == (0.01, 0.01, 3.0)


def test_what_was_created_in_the_start_up_phase_is_not_judged_however_late_it_came() -> None:
    early, late = _batch(at=9_000, records=5, first=1_000), _batch(at=9_000, records=3, first=8_500)

    judged = Lag.of([early, late], created_from=6_000, created_to=10_000)

    assert judged == Lag(records=3, median=0.5, p99=0.5, most=0.5)
