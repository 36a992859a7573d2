"""The option `--record-age`: durations as people write them."""

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.record_age import add_record_age, format_age, record_age


def test_without_the_option_records_are_of_the_present() -> None:
    parser = argparse.ArgumentParser()
    add_record_age(parser)

    assert parser.parse_args([]).record_age == 0.0
    assert parser.parse_args(["--record-age", "36h"]).record_age == 36 * 3600


@pytest.mark.parametrize("text", ["", "2", "2 days", "-2d", "0d", "@daily", "0 0 * * *", "99999d"])
def test_what_is_no_duration_is_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_record_age(parser)

    with pytest.raises(SystemExit) as ended:
        parser.parse_args([f"--record-age={text}"])

    assert ended.value.code == 2
    assert f"not a duration such as 45m, 36h or 2d: {text!r}" in capsys.readouterr().err


@given(st.integers(1, 3_000 * 86_400))
def test_an_age_is_shown_as_the_option_takes_it(seconds: int) -> None:
    assert record_age(format_age(seconds)) == seconds
