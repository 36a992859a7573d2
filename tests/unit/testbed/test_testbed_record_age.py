"""The options `--record-age` and `--set`, which several tools share."""

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.own_settings import own_settings
from testbed.record_age import add_record_age, format_age, record_age


def test_without_the_option_records_are_of_the_present_and_other_texts_are_refused() -> None:
    parser = argparse.ArgumentParser()
    add_record_age(parser)

    assert parser.parse_args([]).record_age == 0.0
    assert parser.parse_args(["--record-age", "36h"]).record_age == 36 * 3600
    for text in ("", "2", "2 days", "-2d", "0d", "@daily", "0 0 * * *", "99999d"):
        with pytest.raises(SystemExit):
            parser.parse_args([f"--record-age={text}"])


@given(st.integers(1, 3_000 * 86_400))
def test_an_age_is_shown_as_the_option_takes_it(seconds: int) -> None:
    assert record_age(format_age(seconds)) == seconds


def test_values_of_properties_may_hold_the_sign() -> None:
    assert own_settings(["tasks.max=4", "topics=a=b"]) == {"tasks.max": "4", "topics": "a=b"}
    with pytest.raises(ValueError, match=r"not KEY=VALUE: tasks\.max"):
        own_settings(["topics=a", "tasks.max"])
