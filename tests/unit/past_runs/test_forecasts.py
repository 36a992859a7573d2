"""Whether the copy or retention comes to a record first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.forecast.verdicts import (
    NEVER,
    AgeMark,
    Backlog,
    Pace,
    catch_up,
    deleted_by_size,
    deleted_by_time,
    forecast,
    worst_first,
)
from mirror_lib.past_runs.outlooks import Outlook, duration
from mirror_lib.past_runs.retention import Retention
from mirror_lib.topology.names import TopicPartition

PLACE = TopicPartition("orders", 0)
HOUR, DAY = 3_600.0, 86_400.0
#: A log of 1000 bytes an offset that starts at 0 and to which 10 offsets a second are written, evenly for a day.
EVEN = Backlog(
    source=PLACE,
    position=800_000,
    log_start=0,
    log_end=864_000,
    log_bytes=864_000_000,
    writes_per_second=10.0,
    marks=tuple(AgeMark(part * DAY, round(864_000 * (1 - part))) for part in (1.0, 0.75, 0.5, 0.25)),
)
#: Segments so small that they make no difference.
ONE_DAY = Retention(seconds=DAY, segment_seconds=1.0, segment_bytes=1000)


def at(speed: float, *, wait: float = 0.0, at_least: bool = False) -> Pace:
    return Pace(wait, speed, at_least=at_least)


def test_a_copy_that_goes_faster_than_writing_catches_up_by_the_difference() -> None:
    # 64,000 offsets are outstanding and 90 a second are gained.
    assert catch_up(EVEN, at(100)) == pytest.approx(64_000 / 90)
    # What is written until the copy begins is copied too.
    assert catch_up(EVEN, at(100, wait=60)) == pytest.approx(60 + (64_000 + 600) / 90)
    # A copy that does not gain.
    assert catch_up(EVEN, at(5.0)) == catch_up(EVEN, at(10.0)) == NEVER


def test_what_is_not_known_is_not_guessed() -> None:
    assert catch_up(EVEN, Pace()) is None
    assert catch_up(replace(EVEN, writes_per_second=None), at(100)) is None
    assert catch_up(EVEN, at(5, at_least=True)) is None, "it may be faster than 5"
    assert deleted_by_time(replace(EVEN, marks=()), ONE_DAY) is None
    assert deleted_by_size(replace(EVEN, log_bytes=None), Retention(bytes=10**9)) is None


def test_age_deletes_the_next_record_when_the_oldest_it_may_be_has_passed() -> None:
    # Offset 800,000 is younger than a quarter of a day, and nothing more is asked.
    assert deleted_by_time(EVEN, ONE_DAY) == pytest.approx(0.75 * DAY)
    # Offset 500,000 lies between a quarter and half a day.
    assert deleted_by_time(replace(EVEN, position=500_000), ONE_DAY) == pytest.approx(0.5 * DAY)
    assert deleted_by_time(EVEN, Retention()) == NEVER


def test_size_deletes_the_next_record_when_enough_stands_behind_it() -> None:
    # 64 MB are outstanding; 36 MB more make 100 MB, at 10 kB a second.
    assert deleted_by_size(EVEN, Retention(bytes=100_000_000)) == pytest.approx(3_600)
    assert deleted_by_size(EVEN, Retention(bytes=64_000_000)) == 0
    assert deleted_by_size(replace(EVEN, writes_per_second=0.0), Retention(bytes=100_000_000)) == NEVER
    assert deleted_by_size(EVEN, ONE_DAY) == NEVER


def test_a_flow_that_keeps_up_is_well_and_records_older_than_retention_may_go_at_any_moment() -> None:
    well = forecast(EVEN, ONE_DAY, at(100, wait=600))
    assert (well.outlook, well.lag, well.lag_bytes) == (Outlook.OK, 64_000, 64_000_000)
    behind = replace(EVEN, position=0, marks=(*EVEN.marks[1:], AgeMark(DAY, 100)))

    found = forecast(behind, ONE_DAY, at(1_000_000))

    assert (found.outlook, found.deleted_by_time_seconds) == (Outlook.TIGHT, 0)
    assert "past retention.ms: they may be deleted at any time" in found.reason


#: 800,000 offsets came in between 24 and 18 hours ago: in 6 hours the last of them is a day old.
BURST = replace(EVEN, position=0, marks=(AgeMark(DAY, 0), AgeMark(0.75 * DAY, 800_000), AgeMark(0.25 * DAY, 840_000)))


def test_a_copy_that_comes_after_retention_loses_records() -> None:
    # It takes 20 hours to copy them.
    found = forecast(BURST, ONE_DAY, at(11))

    assert found.outlook is Outlook.WILL_BE_LOST
    assert "retention.ms deletes records in 6.0 hours" in found.reason
    assert "in 20 hours" in found.reason
    # A segment that keeps its oldest records longer leaves it open.
    found = forecast(BURST, replace(ONE_DAY, segment_seconds=DAY, segment_bytes=10**12), at(11))
    assert found.outlook is Outlook.TIGHT
    assert "at the earliest" in found.reason


def test_a_run_that_comes_too_late_for_the_size_loses_records() -> None:
    # There is room for an hour of writing.
    kept = Retention(bytes=100_000_000, segment_bytes=1000)

    assert forecast(EVEN, kept, at(100, wait=2 * HOUR)).outlook is Outlook.WILL_BE_LOST
    assert forecast(EVEN, kept, at(100, wait=0.6 * HOUR)).outlook is Outlook.TIGHT
    assert forecast(EVEN, kept, at(100, wait=0.4 * HOUR)).outlook is Outlook.OK
    assert forecast(EVEN, replace(kept, bytes=60_000_000), at(100)).outlook is Outlook.TIGHT


def test_what_is_written_faster_than_copied_is_lost_in_the_end_unless_there_is_no_retention() -> None:
    for retention in (Retention(seconds=365 * DAY), Retention(bytes=10**15)):
        found = forecast(EVEN, retention, at(9))
        assert (found.outlook, found.catch_up_seconds) == (Outlook.WILL_BE_LOST, NEVER), retention
        assert "written faster" in found.reason

    found = forecast(EVEN, Retention(), at(1))
    assert (found.outlook, found.catch_up_seconds) == (Outlook.OK, NEVER)
    assert forecast(EVEN, Retention(), Pace()).outlook is Outlook.OK


def test_records_that_are_gone_are_lost_already_and_the_worst_comes_first() -> None:
    gone = forecast(replace(EVEN, log_start=800_100), ONE_DAY, at(100))

    assert gone.outlook is Outlook.ALREADY_LOST
    assert "100 offsets" in gone.reason
    well = forecast(EVEN, Retention(), at(100))
    assert [each.outlook for each in worst_first([well, gone])] == [Outlook.ALREADY_LOST, Outlook.OK]


def test_without_a_measured_speed_the_verdict_is_open_unless_no_speed_can_help() -> None:
    assert forecast(EVEN, ONE_DAY, Pace()).outlook is Outlook.UNKNOWN
    assert forecast(EVEN, ONE_DAY, at(100, at_least=True)).outlook is Outlook.OK
    assert forecast(EVEN, ONE_DAY, at(0.1, at_least=True)).outlook is Outlook.UNKNOWN
    old = replace(EVEN, position=0, marks=(AgeMark(DAY, 100),))
    assert forecast(old, ONE_DAY, Pace()).outlook is Outlook.TIGHT


def test_what_cannot_be_known_says_why() -> None:
    by_size = Retention(bytes=10**9)
    for backlog, retention, reason in (
        (EVEN, None, "configs of the topic cannot be read"),
        (replace(EVEN, marks=()), ONE_DAY, "age of the records is unknown"),
        (replace(EVEN, log_bytes=None), by_size, "does not report the size of its log"),
        (replace(EVEN, writes_per_second=None), by_size, "the write rate is unknown"),
        (EVEN, replace(by_size, remote=True), "tiered storage"),
    ):
        found = forecast(backlog, retention, at(100))
        assert found.outlook is Outlook.UNKNOWN, reason
        assert reason in found.reason


def test_plain_data_tells_never_from_not_known() -> None:
    told = forecast(replace(EVEN, marks=()), replace(ONE_DAY, bytes=None), at(1)).to_dict()

    assert told["catch_up_seconds"] == told["deleted_by_size_seconds"] == "never"
    assert told["deleted_by_time_seconds"] is None
    assert told["outlook"] == "will-be-lost"
    # Durations are told in the unit that fits.
    texts = {45: "45 seconds", 150: "2 minutes", 9_000: "2.5 hours", 86_400: "24 hours", 1_036_800: "12 days"}
    assert {seconds: duration(seconds) for seconds in texts} == texts


POSITIVE = st.floats(0.01, 1e7)
MARKS = st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10_000)), max_size=5).map(
    # A record that is not older than an age is not older than a greater one either.
    lambda pairs: tuple(
        AgeMark(age, offset)
        for age, offset in zip(
            sorted((age for age, _ in pairs), reverse=True), sorted(offset for _, offset in pairs), strict=True
        )
    )
)


@st.composite
def backlogs(draw: st.DrawFn) -> Backlog:
    position = draw(st.integers(0, 10_000))
    return Backlog(
        source=PLACE,
        position=position,
        log_start=0,
        log_end=10_000,
        log_bytes=draw(st.none() | st.integers(1, 10**9)),
        writes_per_second=draw(st.none() | st.just(0.0) | POSITIVE),
        marks=draw(MARKS),
    )


PACES = st.builds(Pace, st.floats(0, 1e6), st.just(0.0) | POSITIVE, at_least=st.booleans())
BOUNDS = st.none() | st.floats(1, 1e7)
SIZES = st.none() | st.integers(1, 10**10)
SEGMENT = {"segment_seconds": st.floats(1, 1e6), "segment_bytes": st.integers(14, 10**9)}


@given(backlogs(), st.builds(Retention, BOUNDS, SIZES, **SEGMENT), PACES, st.integers(0, 10_000), st.floats(1, 100))
def test_more_to_copy_never_helps_and_a_faster_copy_never_harms(
    backlog: Backlog, retention: Retention, pace: Pace, more: int, times: float
) -> None:
    longer = replace(backlog, position=max(backlog.position - more, 0))
    faster = replace(pace, per_second=pace.per_second * times)

    before, after = catch_up(backlog, pace), catch_up(longer, pace)

    if before is not None and after is not None:
        assert after >= before
    verdict = severity(backlog, retention, pace)
    assert severity(longer, retention, pace) >= verdict >= severity(backlog, retention, faster)


@given(backlogs(), st.builds(Retention, BOUNDS, SIZES, **SEGMENT), PACES, st.floats(0.01, 1), st.floats(0.01, 1))
def test_shorter_retention_never_improves_the_verdict(
    backlog: Backlog, retention: Retention, pace: Pace, less_time: float, less_size: float
) -> None:
    shorter = replace(
        retention,
        seconds=retention.seconds and retention.seconds * less_time,
        bytes=retention.bytes and int(retention.bytes * less_size),
    )

    assert severity(backlog, shorter, pace) >= severity(backlog, retention, pace)


def severity(backlog: Backlog, retention: Retention, pace: Pace) -> int:
    return forecast(backlog, retention, pace).outlook.severity
