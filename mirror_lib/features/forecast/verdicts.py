"""Forecasts when a partition catches up, and if retention deletes records before they are copied. No I/O.

A copy reads a log in order while retention deletes it from its start. If the age of some offsets and the copy speed are
known, the times are known at which the copy reaches each of them and at which Kafka may delete it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isinf
from typing import Any

from mirror_lib.counted import counted
from mirror_lib.past_runs.outlooks import Outlook, duration
from mirror_lib.past_runs.retention import Retention
from mirror_lib.topology.names import TopicPartition

#: A duration without end; None is an unknown one.
NEVER = inf
#: If copying takes more than this share of the available time, there is no room for a failed run.
_TIGHT_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class AgeMark:
    """The first offset of a log whose record is at most this number of seconds old; the log end if all are older."""

    age_seconds: float
    offset: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """The known facts of one partition with lag."""

    source: TopicPartition
    #: The next offset to copy.
    position: int
    log_start: int
    log_end: int
    #: Bytes from `log_start` to `log_end`; None if the cluster does not report them.
    log_bytes: int | None = None
    #: Offsets written to the partition.
    writes_per_second: float | None = None
    #: In any order; should include the mark of the topic's retention. Empty if ages are not known.
    marks: tuple[AgeMark, ...] = ()

    @property
    def lag(self) -> int:
        """Lag in offsets; compaction and transactions leave some without a record."""
        return max(self.log_end - self.position, 0)

    @property
    def bytes_per_offset(self) -> float | None:
        """None if the cluster does not report the size."""
        held = self.log_end - self.log_start
        return self.log_bytes / held if self.log_bytes and held > 0 else None

    @property
    def lag_bytes(self) -> int | None:
        """Estimated from the log's average; None if the cluster does not report the size."""
        each = self.bytes_per_offset
        return None if each is None else round(each * self.lag)


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed at which one partition is copied."""

    #: Maximum number of seconds until the copy begins.
    wait_seconds: float = 0.0
    #: Offsets copied per second; 0 with `at_least` if it is not known.
    per_second: float = 0.0
    #: True if the copy may be faster.
    at_least: bool = True


@dataclass(frozen=True, slots=True)
class PartitionForecast:
    """The forecast of one partition. Seconds count from now; `NEVER` is infinite, None is not known."""

    source: TopicPartition
    lag: int
    lag_bytes: int | None
    writes_per_second: float | None
    copies_per_second: float | None
    catch_up_seconds: float | None
    #: Earliest time at which the first record that is not copied may be deleted because of its age.
    deleted_by_time_seconds: float | None
    #: Earliest time at which it may be deleted because of the log's size.
    deleted_by_size_seconds: float | None
    outlook: Outlook
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output: `"never"` for `NEVER`, null for an unknown value."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "outlook": self.outlook.value,
            "reason": self.reason,
            "lag": self.lag,
            "lag_bytes": self.lag_bytes,
            "writes_per_second": _plain(self.writes_per_second),
            "copies_per_second": _plain(self.copies_per_second),
            "catch_up_seconds": _plain(self.catch_up_seconds),
            "deleted_by_time_seconds": _plain(self.deleted_by_time_seconds),
            "deleted_by_size_seconds": _plain(self.deleted_by_size_seconds),
        }


def _plain(value: float | None) -> float | str | None:
    return None if value is None else "never" if isinf(value) else round(value, 3)


def forecast(backlog: Backlog, retention: Retention | None, pace: Pace) -> PartitionForecast:
    """Forecast one partition.

    Args:
        retention: None if the topic's configs cannot be read.
    """
    outlook, reason = _judge(backlog, retention, pace)
    return PartitionForecast(
        source=backlog.source,
        lag=backlog.lag,
        lag_bytes=backlog.lag_bytes,
        writes_per_second=backlog.writes_per_second,
        copies_per_second=pace.per_second or None,
        catch_up_seconds=catch_up(backlog, pace),
        deleted_by_time_seconds=None if retention is None else deleted_by_time(backlog, retention),
        deleted_by_size_seconds=None if retention is None else deleted_by_size(backlog, retention),
        outlook=outlook,
        reason=reason,
    )


def with_deletions(
    found: PartitionForecast, retention: Retention | None, age_seconds: float | None, wait_seconds: float
) -> PartitionForecast:
    """Extend a forecast by deletions that may wait in a compacted topic.

    Which records are deletions is unknown without reading the log, so the outlook becomes at most tight.

    Args:
        age_seconds: since the copy was at the end of the log; None if it is not known.
        wait_seconds: maximum time until the copy begins.
    """
    kept = None if retention is None else retention.tombstone_seconds
    if kept is None or age_seconds is None or found.lag == 0:
        return found
    left = max(kept - age_seconds, 0.0)
    others = found.deleted_by_time_seconds
    found = replace(found, deleted_by_time_seconds=left if others is None else min(others, left))
    copied_in = wait_seconds if found.catch_up_seconds is None else found.catch_up_seconds
    if copied_in < left or found.outlook.severity >= Outlook.TIGHT.severity:
        return found
    return replace(
        found,
        outlook=Outlook.TIGHT,
        reason=f"the source keeps deletions for {duration(kept)} (delete.retention.ms), and the copy was at the end of "
        f"the partition {duration(age_seconds)} ago: keys that were deleted since may stay on the target",
    )


def behind_transaction(found: PartitionForecast, offsets: int) -> PartitionForecast:
    """Extend a forecast of a partition in which some records stay hidden until an operator ends a transaction.

    Args:
        offsets: number of hidden offsets.
    """
    limits = (found.deleted_by_time_seconds, found.deleted_by_size_seconds)
    reason = f"{counted(offsets, 'offset is', 'offsets are')} hidden by a transaction that will not end by itself"
    known = [limit for limit in limits if limit is not None]
    if known and not isinf(min(known)):
        outlook, when = Outlook.WILL_BE_LOST, f", and retention may delete them {deadline(min(known))}"
    else:
        outlook, when = Outlook.UNKNOWN, ": they are not copied until an operator ends it"
    if found.outlook.severity > outlook.severity:
        return replace(found, catch_up_seconds=NEVER)
    return replace(found, catch_up_seconds=NEVER, outlook=outlook, reason=reason + when)


def catch_up(backlog: Backlog, pace: Pace) -> float | None:
    """Seconds until the copy reaches the log end of that time; `NEVER` if more is written than copied."""
    if backlog.lag == 0:
        return 0.0
    if not pace.per_second or backlog.writes_per_second is None:
        return None
    gain = pace.per_second - backlog.writes_per_second
    if gain <= 0:
        return None if pace.at_least else NEVER
    # More is written while the copy waits.
    return pace.wait_seconds + (backlog.lag + backlog.writes_per_second * pace.wait_seconds) / gain


def deleted_by_time(backlog: Backlog, retention: Retention) -> float | None:
    """Earliest seconds until the next record to copy may be deleted because of its age."""
    if retention.seconds is None:
        return NEVER
    if not backlog.marks:
        return None
    # Its age is bounded by the oldest mark that it is not before.
    return max(retention.seconds - _greatest_age(backlog, retention), 0.0)


def deleted_by_size(backlog: Backlog, retention: Retention) -> float | None:
    """Earliest seconds until the next record to copy may be deleted because of the log's size."""
    if retention.bytes is None:
        return NEVER
    room = _room(backlog, retention)
    if room is None:
        return None
    if room > 0 and backlog.writes_per_second is None:
        return None
    return _until(room, backlog.writes_per_second)


def _greatest_age(backlog: Backlog, retention: Retention) -> float:
    reached = [mark.age_seconds for mark in backlog.marks if mark.offset <= backlog.position]
    assert retention.seconds is not None
    return min(reached, default=retention.seconds)


def _room(backlog: Backlog, retention: Retention) -> float | None:
    """Offsets that may be written before size retention may delete the next record to copy; negative if exceeded."""
    each = backlog.bytes_per_offset
    if retention.bytes is None or retention.remote or each is None:
        return None
    return retention.bytes / each - backlog.lag


def _judge(backlog: Backlog, retention: Retention | None, pace: Pace) -> tuple[Outlook, str]:
    if backlog.position < backlog.log_start:
        lost = backlog.log_start - backlog.position
        return Outlook.ALREADY_LOST, f"retention deleted {counted(lost, 'offset')} before they were copied"
    if backlog.lag == 0:
        return Outlook.OK, "no lag"
    if retention is None:
        return Outlook.UNKNOWN, "the configs of the topic cannot be read"
    if not retention.deletes:
        return Outlook.OK, "retention does not delete records of this topic"
    dark = _worst(_findings(backlog, retention, pace))
    if not pace.at_least or dark[0] is Outlook.OK:
        return dark
    # The copy may be faster: check what remains at infinite speed.
    bright = _worst(_findings(backlog, retention, Pace(0.0, inf, at_least=False)))
    if bright[0] is not Outlook.OK:
        return bright
    if pace.per_second == 0:
        return Outlook.UNKNOWN, "no recent copy, so the copy rate is unknown"
    return Outlook.UNKNOWN, "too few recent copies to know the copy rate"


def _worst(findings: Iterator[tuple[Outlook, str]]) -> tuple[Outlook, str]:
    fine = (Outlook.OK, "the lag will be copied before retention deletes it")
    return max([fine, *findings], key=lambda found: found[0].severity)


def _findings(backlog: Backlog, retention: Retention, pace: Pace) -> Iterator[tuple[Outlook, str]]:
    yield from _outrun(backlog, pace)
    if retention.seconds is not None:
        yield from _by_time(backlog, retention, retention.seconds, pace)
    if retention.bytes is not None:
        yield from _by_size(backlog, retention, pace)


def _outrun(backlog: Backlog, pace: Pace) -> Iterator[tuple[Outlook, str]]:
    written = backlog.writes_per_second
    if written is not None and written > pace.per_second:
        yield (
            Outlook.WILL_BE_LOST,
            f"the source is written faster ({written:,.0f} offsets/s) than copied ({pace.per_second:,.0f} "
            "offsets/s), so "
            "retention will overtake the copy",
        )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Records before `end` that are between `youngest` and `oldest` seconds old; `inf` beyond retention."""

    end: int
    youngest: float
    oldest: float


def _spans(backlog: Backlog) -> list[_Stretch]:
    """The records to copy, oldest first."""
    ordered = sorted(backlog.marks, key=lambda mark: (-mark.age_seconds, mark.offset))
    ends = [(min(mark.offset, backlog.log_end), mark.age_seconds) for mark in ordered]
    found, oldest, begin = [], inf, backlog.position
    for end, age in (*ends, (backlog.log_end, 0.0)):
        if end > begin:
            found.append(_Stretch(end, age, oldest))
            begin = end
        oldest = age
    return found


def _by_time(backlog: Backlog, retention: Retention, seconds: float, pace: Pace) -> Iterator[tuple[Outlook, str]]:
    if not backlog.marks:
        yield Outlook.UNKNOWN, "the age of the records is unknown"
        return
    spread = _segment_seconds(backlog, retention)
    for span in _spans(backlog):
        copied_in = pace.wait_seconds + _seconds_for(span.end - backlog.position, pace.per_second)
        earliest, latest = max(seconds - span.oldest, 0.0), max(seconds - span.youngest, 0.0)
        if copied_in > latest + spread:
            yield (
                Outlook.WILL_BE_LOST,
                f"retention.ms deletes records {deadline(latest + spread)}, but the copy reaches them "
                f"{deadline(copied_in)}",
            )
        elif span.oldest > seconds:
            yield Outlook.TIGHT, "the oldest records are past retention.ms: they may be deleted at any time"
        elif copied_in > earliest * _TIGHT_SHARE:
            yield (
                Outlook.TIGHT,
                f"retention.ms may delete records {deadline(earliest)} at the earliest, and the copy reaches them "
                f"{deadline(copied_in)}",
            )


def _by_size(backlog: Backlog, retention: Retention, pace: Pace) -> Iterator[tuple[Outlook, str]]:
    room, written, each = _room(backlog, retention), backlog.writes_per_second, backlog.bytes_per_offset
    if room is None or each is None:
        what = "of a log in tiered storage" if retention.remote else "of its log"
        yield Outlook.UNKNOWN, f"retention.bytes is set, but the cluster does not report the size {what}"
        return
    if room > 0 and written is None:
        yield Outlook.UNKNOWN, "retention.bytes is set, but the write rate is unknown"
        return
    earliest, latest = _until(room, written), _until(room + retention.segment_bytes / each, written)
    # From there on the copy is faster than the writes, or it is outrun.
    begins = pace.wait_seconds
    if begins > latest:
        yield (
            Outlook.WILL_BE_LOST,
            f"retention.bytes deletes the next records {deadline(latest)}, but the copy starts {deadline(begins)}",
        )
    elif earliest == 0:
        yield (
            Outlook.TIGHT,
            "the lag is larger than retention.bytes: the next records may be deleted at any time",
        )
    elif begins > earliest * _TIGHT_SHARE:
        yield (
            Outlook.TIGHT,
            f"retention.bytes may delete the next records {deadline(earliest)} at the earliest, and the copy starts "
            f"{deadline(begins)} at the latest",
        )


def _until(room: float, written: float | None) -> float:
    """Seconds until this number of offsets is written; `NEVER` without writes, and 0 without room."""
    return 0.0 if room <= 0 else room / written if written else NEVER


def _segment_seconds(backlog: Backlog, retention: Retention) -> float:
    """The maximum time by which the oldest record of a segment outlives its retention: until the youngest expires."""
    each, written = backlog.bytes_per_offset, backlog.writes_per_second
    if each is None or not written or retention.remote:
        return retention.segment_seconds
    return min(retention.segment_seconds, retention.segment_bytes / (each * written))


def _seconds_for(offsets: int, per_second: float) -> float:
    return offsets / per_second if per_second else inf


def deadline(seconds: float) -> str:
    """A time from now as text: `now`, `in 5 minutes`, `never`."""
    return "never" if isinf(seconds) else "now" if seconds < 1 else f"in {duration(seconds)}"


def worst_first(forecasts: Sequence[PartitionForecast]) -> list[PartitionForecast]:
    """Sort by outlook, worst first, then by partition name."""
    return sorted(forecasts, key=lambda each: (-each.outlook.severity, each.source))
