"""How fast records are written to the source and copied to the target, from what was seen. No I/O.

Rates are positive numbers per second; where nothing is known there is None. What cannot be known for certain errs on
the side of caution: a forecast that is too dark costs a look, one that is too bright costs records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TypeVar

from mirror_lib.ledger.queries import CopiedRound

_Key = TypeVar("_Key")

#: A round that copied less, and for a shorter time, says how long a round takes and not how fast it copies.
_MEASURED_SECONDS, _MEASURED_BYTES = 2.0, 16_000_000
#: Ends of the log that runs noted tell the rate when they are neither from just now nor from long ago.
_NEAR_SECONDS, _FAR_SECONDS = 300.0, 6 * 3600.0


@dataclass(frozen=True, slots=True)
class CopySpeed:
    """What a flow can copy."""

    bytes_per_second: float
    records_per_second: float
    #: What a single partition has reached: it has one writer, however many tasks there are.
    partition_bytes_per_second: float
    partition_records_per_second: float
    #: All rounds were too small to measure: it may be much faster.
    at_least: bool


def copy_speed(rounds: Sequence[CopiedRound]) -> CopySpeed | None:
    """The best of some recent rounds: others had less to do, or shared the machine. None when nothing was copied."""
    copied = [each for each in rounds if each.seconds > 0 and each.records > 0]
    measured = [each for each in copied if each.seconds >= _MEASURED_SECONDS or each.bytes >= _MEASURED_BYTES]
    seen = measured or copied
    if not seen:
        return None
    return CopySpeed(
        bytes_per_second=max(each.bytes / each.seconds for each in seen),
        records_per_second=max(each.records / each.seconds for each in seen),
        partition_bytes_per_second=max(each.partition_bytes_per_second for each in seen),
        partition_records_per_second=max(each.partition_records_per_second for each in seen),
        at_least=not measured,
    )


def run_interval(starts: Sequence[float]) -> float | None:
    """The usual seconds between the starts of runs, from their times in seconds in any order; None for one run."""
    ordered = sorted(starts)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    return median(gaps) if gaps else None


@dataclass(frozen=True, slots=True)
class Demand:
    """What one partition needs, in one unit for all partitions: bytes or records."""

    outstanding: float
    written_per_second: float


def shared_rates(
    demands: Mapping[_Key, Demand], flow_per_second: float, partition_per_second: float
) -> dict[_Key, float]:
    """What each partition gets of the flow's speed while all of them are behind.

    Each gets what is written to it and a share of the rest in proportion to what it has outstanding, so that all catch
    up at the same time. Where more is written than the flow can copy, what is written and what is outstanding share the
    speed in proportion.
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
    """An end of a partition's log in the past."""

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
        by_time: the first record that is not older than so many seconds, by the records' own times; the log's end
            where all are older.
        recorded: where the log ended when an earlier run planned: offsets and our own clock, so certainly true.
        append_time: the records' times are the broker's. Those that producers set may be anything: copies of old
            records look as if nothing had been written, clocks that are ahead as if everything were new.
    """
    ledger = None
    # A log that ends before it ended once was cut, or is another one.
    if recorded is not None and recorded.seconds_ago > 0 and recorded.offset <= log_end:
        ledger = (log_end - recorded.offset) / recorded.seconds_ago
    # Of the windows the busiest counts.
    timed = max((max(log_end - each.offset, 0) / each.seconds_ago for each in by_time), default=None)
    if append_time and timed is not None:
        return timed
    if ledger is not None and recorded is not None and _NEAR_SECONDS <= recorded.seconds_ago <= _FAR_SECONDS:
        return ledger
    oldest = max(by_time, key=lambda each: each.seconds_ago, default=None)
    if oldest is not None and log_start < oldest.offset < log_end:
        return timed
    return ledger
