"""SimpleDateFormat: expectations are those of the examples in Java's documentation of the class, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.transform.smt.values.data import DataError
from mirror_lib.transform.smt.values.date_format import DateFormat

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def milliseconds(*parts: int) -> int:
    return (datetime(*parts, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)  # type: ignore[misc,arg-type]


#: 4 July 2001, 12:08:56.235, as in the documentation.
INDEPENDENCE = milliseconds(2001, 7, 4, 12, 8, 56, 235_000)


def test_formats() -> None:
    for pattern, text in [
        ("yyyy.MM.dd 'at' HH:mm:ss z", "2001.07.04 at 12:08:56 UTC"),
        ("EEE, MMM d, ''yy", "Wed, Jul 4, '01"),
        ("h:mm a", "12:08 PM"),
        ("hh 'o''clock' a, zzzz", "12 o'clock PM, Coordinated Universal Time"),
        ("K:mm a, z", "0:08 PM, UTC"),
        ("yyyyy.MMMMM.dd hh:mm aaa", "02001.July.04 12:08 PM"),
        ("EEE, d MMM yyyy HH:mm:ss Z", "Wed, 4 Jul 2001 12:08:56 +0000"),
        ("yyMMddHHmmssZ", "010704120856+0000"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2001-07-04T12:08:56.235Z"),
        ("yyyyMMdd", "20010704"),
        ("D u k EEEE S SSSSSS y M", "185 3 12 Wednesday 235 000235 2001 7"),
    ]:
        assert DateFormat.compile(pattern).format(INDEPENDENCE) == text, pattern


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("YYYY-MM-dd", "letter Y"), ("w", "letter w"), ("G", "letter G"), ("b", "b is not a letter"),
     ("'x", "is not closed"),
     ("XXXX", "three times")],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_letter(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DateFormat.compile(pattern)


def test_texts_are_read_as_leniently_as_java_does_or_refused(subtests: pytest.Subtests) -> None:
    for pattern, text, moment in [
        ("yyyyMMddHHmmss", "20010704120856", milliseconds(2001, 7, 4, 12, 8, 56)),
        ("yyyy-MM-dd HH:mm", "2001-07-04 12:08 and more", milliseconds(2001, 7, 4, 12, 8)),
        ("yyyy-MM-dd", "2001-13-32", milliseconds(2002, 2, 1)),
        ("yyyy-M-d", "2001-7-4", milliseconds(2001, 7, 4)),
        ("d MMM yyyy", "4 july 2001", milliseconds(2001, 7, 4)),
        ("EEE, d MMM yyyy HH:mm:ss Z", "Wed, 4 Jul 2001 12:08:56 -0700", milliseconds(2001, 7, 4, 19, 8, 56)),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2001-07-04T12:08:56+02", milliseconds(2001, 7, 4, 10, 8, 56)),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2001-07-04T12:08:56Z", milliseconds(2001, 7, 4, 12, 8, 56)),
        ("yyyy-MM-dd hh:mm a", "2001-07-04 12:08 AM", milliseconds(2001, 7, 4, 0, 8)),
        ("yyyy-MM-dd hh:mm a", "2001-07-04 01:08 pm", milliseconds(2001, 7, 4, 13, 8)),
        ("yyyy-MM-dd kk", "2001-07-04 24", milliseconds(2001, 7, 4)),
        ("ss.SSS", "1.5", 1005),
        ("yyyy", "  2001", milliseconds(2001, 1, 1)),
    ]:
        assert DateFormat.compile(pattern).parse(text) == moment, pattern

    for pattern, text in [
        ("yyyy-MM-dd", "2001/07/04"),
        ("yyyy", "x"),
        ("yyyyMMdd", "200107"),
        ("MMM yyyy", "Foo 2001"),
        ("yyyy z", "2001 "),
    ]:
        with subtests.test(pattern), pytest.raises(DataError, match="does not match pattern"):
            DateFormat.compile(pattern).parse(text)


def test_patterns_that_can_only_be_written_and_moments_before_the_gregorian_calendar(subtests: pytest.Subtests) -> None:
    for pattern in ["yy-MM-dd", "EEE yyyy", "yyyy D"]:
        with subtests.test(pattern):
            written = DateFormat.compile(pattern)

            assert written.format(INDEPENDENCE)
            assert written.why_not_parsed() is not None
            with pytest.raises(DataError, match="cannot be parsed here"):
                written.parse("01-07-04")

    with pytest.raises(DataError, match="1582"):
        DateFormat.compile("yyyy").format(-13_000_000_000_000)


@given(st.datetimes(datetime(1583, 1, 1), datetime(9999, 12, 31)))
def test_dates_are_those_of_python(moment: datetime) -> None:
    at = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
    written = DateFormat.compile("yyyy-MM-dd'T'HH:mm:ss.SSS D u EEE MMM")

    expected = moment.isoformat(timespec="milliseconds") + moment.strftime(" %j ").replace(" 00", " ").replace(
        " 0", " "
    )
    assert written.format(at) == expected + moment.strftime("%u %a %b")


@given(st.integers(-12_219_292_800_000, 253_402_300_799_999))
def test_what_is_written_is_read_again(at: int) -> None:
    for pattern in ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "yyyyMMddHHmmssSSS", "EEEE d MMMM yyyy h:mm:ss.SSS a Z"):
        written = DateFormat.compile(pattern)
        assert written.parse(written.format(at)) == at


@given(
    st.text("yMdDHhkKmsSEuazZX", min_size=1, max_size=3).map(lambda letters: "x".join(letters).replace("x", "'x'")),
    st.integers(-12_219_292_800_000, 253_402_300_799_999),
    st.integers(0, 86_400_000),
)
def test_moments_of_one_resolution_have_one_text(pattern: str, at: int, later: int) -> None:
    written = DateFormat.compile(pattern)
    first = at // written.resolution * written.resolution

    assert written.format(at) == written.format(first) == written.format(first + later % written.resolution)


def test_the_resolution_is_that_of_the_finest_letter() -> None:
    for pattern, resolution in [
        ("yyyy", 86_400_000),
        ("'S'yyyy", 86_400_000),
        ("yyyyMMddHH", 3_600_000),
        ("h:mm", 60_000),
        ("ss", 1000),
        ("sS", 1),
    ]:
        assert DateFormat.compile(pattern).resolution == resolution, pattern
