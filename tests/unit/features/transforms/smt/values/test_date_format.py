"""SimpleDateFormat, in UTC; `tests/integration/features/transforms/test_smt_like_java.py` compares with Java's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.smt.values.data import DataError
from mirror_lib.features.transforms.smt.values.date_format import DateFormat

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


#: 4 July 2001, 12:08:56.235.
INDEPENDENCE = 994_248_536_235


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("YYYY-MM-dd", "letter Y"), ("w", "letter w"), ("G", "letter G"), ("b", "b is not a letter"),
     ("'x", "is not closed"),
     ("XXXX", "three times")],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_letter(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DateFormat.compile(pattern)


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
