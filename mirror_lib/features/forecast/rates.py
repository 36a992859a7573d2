"""Rates at which records are written to the source, and shares of the copy speed, from measurements. No I/O.

Rates are positive numbers per second, or None if unknown. Uncertain values are pessimistic: a forecast that is too bad
costs a check, one that is too good costs records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TypeVar

_Key = TypeVar("_Key")

#: Log ends recorded by runs are used for the rate if they are neither too recent nor too old.
_NEAR_SECONDS, _FAR_SECONDS = 300.0, 6 * 3600.0


def run_interval(starts: Sequence[float]) -> float | None:
    """The usual seconds between the starts of runs, from their times in seconds in any order; None for one run."""
    ordered = sorted(starts)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    return median(gaps) if gaps else None


@dataclass(frozen=True, slots=True)
class Demand:
    """Write rate and lag of one partition, in one unit for all partitions: bytes or records."""

    outstanding: float
    written_per_second: float


def shared_rates(
    demands: Mapping[_Key, Demand], flow_per_second: float, partition_per_second: float
) -> dict[_Key, float]:
    """Divide the flow's speed among partitions while all of them have lag.

    Each gets its write rate, and a share of the rest in proportion to its lag, so that all catch up at the same time.
    If more is written than the flow can copy, the speed is divided in proportion to write rate and lag.
    """
    written = sum(each.written_per_second for each in demands.values())
    outstanding = sum(each.outstanding for each in demands.values())
    spare = flow_per_second - written
    rates: dict[_Key, float] = {}
    for key, each in demands.items():
        share = each.outstanding / outstanding if outstanding else 1 / len(demands)
        if spare > 0:
            rate = each.written_per_second + spare * share
        else:
            part = (each.written_per_second + flow_per_second * share) / (written + flow_per_second)
            rate = flow_per_second * part
        rates[key] = min(rate, partition_per_second)
    return rates


@dataclass(frozen=True, slots=True)
class SeenEnd:
    """A log end offset of a partition in the past."""

    seconds_ago: float
    offset: int


def write_rate(
    log_start: int,
    log_end: int,
    *,
    by_time: Sequence[SeenEnd],
    recorded: SeenEnd | None,
    append_time: bool,
) -> float | None:
    """Offsets written per second.

    Args:
        by_time: the first record that is at most this number of seconds old, by record timestamps; the log end offset
            if all are older.
        recorded: the log end offset when an earlier run planned: offsets and the own clock, so certainly correct.
        append_time: timestamps are the broker's. Timestamps from producers are arbitrary: copies of old records look as
            if nothing had been written, clocks that are ahead as if everything were new.
    """
    ledger = None
    # A log that ends earlier than before was truncated, or recreated.
    if recorded is not None and recorded.seconds_ago > 0 and recorded.offset <= log_end:
        ledger = (log_end - recorded.offset) / recorded.seconds_ago
    # Use the busiest of the windows.
    timed = max((max(log_end - each.offset, 0) / each.seconds_ago for each in by_time), default=None)
    if append_time and timed is not None:
        return timed
    if ledger is not None and recorded is not None and _NEAR_SECONDS <= recorded.seconds_ago <= _FAR_SECONDS:
        return ledger
    oldest = max(by_time, key=lambda each: each.seconds_ago, default=None)
    if oldest is not None and log_start < oldest.offset < log_end:
        return timed
    return ledger
