"""When a partition will have caught up, and whether retention deletes records before they are copied. No I/O.

A copy goes through a log in order while retention deletes it from the other end. Where the age of some offsets is
known, and how fast is copied, it can be said when the copy comes to each of them and when Kafka may delete it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isinf
from typing import Any

from mirror_lib.observe.retention import Retention
from mirror_lib.topology import TopicPartition

#: A duration that never ends, as None is one that is not known.
NEVER = inf
#: Copying that takes more than this share of the time there is leaves no room for a run that fails.
_TIGHT_SHARE = 0.5


class Outlook(StrEnum):
    """Whether everything will be copied before retention deletes it, best first."""

    OK = "ok"
    #: What a verdict depends on is not known.
    UNKNOWN = "unknown"
    #: It may go wrong: some records may be deleted already when the copy comes to them, or nearly.
    TIGHT = "tight"
    #: At this speed some records are deleted before they are copied.
    WILL_BE_LOST = "will-be-lost"
    ALREADY_LOST = "already-lost"

    @property
    def severity(self) -> int:
        """Greater is worse."""
        return list(Outlook).index(self)


@dataclass(frozen=True, slots=True)
class AgeMark:
    """The first offset of a log whose record is not older than so many seconds; the log's end where all are older."""

    age_seconds: float
    offset: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is known of one partition that has something to copy."""

    source: TopicPartition
    #: The next offset to copy.
    position: int
    log_start: int
    log_end: int
    #: Bytes from `log_start` to `log_end`; None when the cluster does not say.
    log_bytes: int | None = None
    #: Offsets written to it.
    writes_per_second: float | None = None
    #: In any order; the one of the topic's retention should be among them. Empty when ages are not known.
    marks: tuple[AgeMark, ...] = ()

    @property
    def lag(self) -> int:
        """Offsets to copy; compaction and transactions leave some without a record."""
        return max(self.log_end - self.position, 0)

    @property
    def bytes_per_offset(self) -> float | None:
        """None when the cluster does not say."""
        held = self.log_end - self.log_start
        return self.log_bytes / held if self.log_bytes and held > 0 else None

    @property
    def lag_bytes(self) -> int | None:
        """Estimated by the log's average; None when the cluster does not say."""
        each = self.bytes_per_offset
        return None if each is None else round(each * self.lag)


@dataclass(frozen=True, slots=True)
class Pace:
    """How one partition is copied."""

    #: Seconds until the copy begins, at most.
    wait_seconds: float = 0.0
    #: Offsets copied per second; 0 with `at_least` when nothing is known.
    per_second: float = 0.0
    #: It may be faster.
    at_least: bool = True


@dataclass(frozen=True, slots=True)
class PartitionForecast:
    """What is to be expected of one partition. Seconds count from now; `NEVER` is infinite, None is not known."""

    source: TopicPartition
    lag: int
    lag_bytes: int | None
    writes_per_second: float | None
    copies_per_second: float | None
    catch_up_seconds: float | None
    #: When the first record that is not copied may be deleted because of its age, at the earliest.
    deleted_by_time_seconds: float | None
    #: When it may be deleted because of the log's size, at the earliest.
    deleted_by_size_seconds: float | None
    outlook: Outlook
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output: `"never"` stands for what never comes, null for what is not known."""
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
    """Judge one partition.

    Args:
        retention: None when the topic's configs cannot be read.
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
    """A forecast that also minds the deletions that may be waiting in a compacted topic.

    Which records of the log are deletions nobody knows without reading it, so no more is said than that it is tight.

    Args:
        age_seconds: since the copy was at the end of the log, None where that is not known.
        wait_seconds: until the copy begins, at most.
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
        f"the partition {duration(age_seconds)} ago: keys that were deleted since may live on the target for ever",
    )


def behind_transaction(found: PartitionForecast, offsets: int) -> PartitionForecast:
    """A forecast of a partition of which some records stay hidden until an operator ends a transaction.

    Args:
        offsets: that are hidden.
    """
    limits = (found.deleted_by_time_seconds, found.deleted_by_size_seconds)
    told = f"{offsets:,} offsets are hidden by a transaction that does not end by itself"
    known = [limit for limit in limits if limit is not None]
    if known and not isinf(min(known)):
        outlook, when = Outlook.WILL_BE_LOST, f", and retention may delete them {deadline(min(known))}"
    else:
        outlook, when = Outlook.UNKNOWN, ": they are not copied before an operator ends it"
    if found.outlook.severity > outlook.severity:
        return replace(found, catch_up_seconds=NEVER)
    return replace(found, catch_up_seconds=NEVER, outlook=outlook, reason=told + when)


def catch_up(backlog: Backlog, pace: Pace) -> float | None:
    """Seconds until the copy has come to the log's end as it is then; `NEVER` where more is written than copied."""
    if backlog.lag == 0:
        return 0.0
    if not pace.per_second or backlog.writes_per_second is None:
        return None
    gain = pace.per_second - backlog.writes_per_second
    if gain <= 0:
        return None if pace.at_least else NEVER
    # While the copy waits, more is written.
    return pace.wait_seconds + (backlog.lag + backlog.writes_per_second * pace.wait_seconds) / gain


def deleted_by_time(backlog: Backlog, retention: Retention) -> float | None:
    """Seconds until the next record to copy may be deleted because of its age, at the earliest."""
    if retention.seconds is None:
        return NEVER
    if not backlog.marks:
        return None
    # It is as old as the oldest of the marks that it does not lie before allows.
    return max(retention.seconds - _greatest_age(backlog, retention), 0.0)


def deleted_by_size(backlog: Backlog, retention: Retention) -> float | None:
    """Seconds until the next record to copy may be deleted because of the log's size, at the earliest."""
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
    """Offsets that may be written before the size may delete the next record to copy; negative where they were."""
    each = backlog.bytes_per_offset
    if retention.bytes is None or retention.remote or each is None:
        return None
    return retention.bytes / each - backlog.lag


def _judge(backlog: Backlog, retention: Retention | None, pace: Pace) -> tuple[Outlook, str]:
    if backlog.position < backlog.log_start:
        lost = backlog.log_start - backlog.position
        return Outlook.ALREADY_LOST, f"retention deleted {lost:,} offsets before they were copied"
    if backlog.lag == 0:
        return Outlook.OK, "there is nothing to copy"
    if retention is None:
        return Outlook.UNKNOWN, "the topic's configs cannot be read"
    if not retention.deletes:
        return Outlook.OK, "retention deletes nothing of this topic"
    dark = _worst(_findings(backlog, retention, pace))
    if not pace.at_least or dark[0] is Outlook.OK:
        return dark
    # It may be faster than that: what is to be feared however fast it is?
    bright = _worst(_findings(backlog, retention, Pace(0.0, inf, at_least=False)))
    if bright[0] is not Outlook.OK:
        return bright
    if pace.per_second == 0:
        return Outlook.UNKNOWN, "nothing has been copied lately, so the speed is not known"
    return Outlook.UNKNOWN, "so little was copied lately that the speed is not known"


def _worst(findings: Iterator[tuple[Outlook, str]]) -> tuple[Outlook, str]:
    fine = (Outlook.OK, "it will be copied before retention deletes it")
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
            f"it is written faster ({written:,.0f} offsets a second) than copied ({pace.per_second:,.0f}), so that "
            "retention overtakes the copy sooner or later",
        )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Records before `end` that are between `youngest` and `oldest` seconds old; those beyond retention are `inf`."""

    end: int
    youngest: float
    oldest: float


def _spans(backlog: Backlog) -> list[_Stretch]:
    """What is to be copied, oldest records first."""
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
        yield Outlook.UNKNOWN, "the age of its records is not known"
        return
    spread = _segment_seconds(backlog, retention)
    for span in _spans(backlog):
        copied_in = pace.wait_seconds + _seconds_for(span.end - backlog.position, pace.per_second)
        earliest, latest = max(seconds - span.oldest, 0.0), max(seconds - span.youngest, 0.0)
        if copied_in > latest + spread:
            yield (
                Outlook.WILL_BE_LOST,
                f"retention.ms deletes records {deadline(latest + spread)}, and the copy comes to them only "
                f"{deadline(copied_in)}",
            )
        elif span.oldest > seconds:
            yield Outlook.TIGHT, "its oldest records are past retention.ms: they may be deleted at any moment"
        elif copied_in > earliest * _TIGHT_SHARE:
            yield (
                Outlook.TIGHT,
                f"retention.ms may delete records {deadline(earliest)} at the earliest, and the copy comes to them "
                f"{deadline(copied_in)}",
            )


def _by_size(backlog: Backlog, retention: Retention, pace: Pace) -> Iterator[tuple[Outlook, str]]:
    room, written, each = _room(backlog, retention), backlog.writes_per_second, backlog.bytes_per_offset
    if room is None or each is None:
        what = "of a log in tiered storage" if retention.remote else "of its log"
        yield Outlook.UNKNOWN, f"retention.bytes is set, and the cluster does not tell the size {what}"
        return
    if room > 0 and written is None:
        yield Outlook.UNKNOWN, "retention.bytes is set, and it is not known how fast it is written"
        return
    earliest, latest = _until(room, written), _until(room + retention.segment_bytes / each, written)
    # From there on the copy goes faster than what is written, or it is outrun.
    begins = pace.wait_seconds
    if begins > latest:
        yield (
            Outlook.WILL_BE_LOST,
            f"retention.bytes deletes its next records {deadline(latest)}, and the copy begins {deadline(begins)}",
        )
    elif earliest == 0:
        yield (
            Outlook.TIGHT,
            "more is uncopied than retention.bytes keeps: its next records may be deleted at any moment",
        )
    elif begins > earliest * _TIGHT_SHARE:
        yield (
            Outlook.TIGHT,
            f"retention.bytes may delete its next records {deadline(earliest)} at the earliest, and the copy begins "
            f"{deadline(begins)} at the latest",
        )


def _until(room: float, written: float | None) -> float:
    """Seconds until so many offsets are written; without writes that is never, and now when there is no room left."""
    return 0.0 if room <= 0 else room / written if written else NEVER


def _segment_seconds(backlog: Backlog, retention: Retention) -> float:
    """By how much the oldest record of a segment outlives its time, at most: until the youngest goes too."""
    each, written = backlog.bytes_per_offset, backlog.writes_per_second
    if each is None or not written or retention.remote:
        return retention.segment_seconds
    return min(retention.segment_seconds, retention.segment_bytes / (each * written))


def _seconds_for(offsets: int, per_second: float) -> float:
    return offsets / per_second if per_second else inf


def deadline(seconds: float) -> str:
    """A time from now in words: `now`, `in 5 minutes`, `never`."""
    return "never" if isinf(seconds) else "now" if seconds < 1 else f"in {duration(seconds)}"


def duration(seconds: float) -> str:
    """A duration in words, in the unit that fits: `40 seconds`, `5 minutes`, `3.5 hours`, `12 days`."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            count = seconds / size
            return f"{count:.1f} {unit}" if count < 10 and unit != "minutes" else f"{count:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


def worst_first(forecasts: Sequence[PartitionForecast]) -> list[PartitionForecast]:
    """The worst verdicts first, in each the partitions by name."""
    return sorted(forecasts, key=lambda each: (-each.outlook.severity, each.source))
