"""`./run test --slowest`: what is measured, and how it adds up."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.timings import WAITING, Measured, Stopwatch, covered, main, watched_functions

_INTERVALS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)).map(lambda each: (each[0], sum(each))))


def test_every_function_that_is_watched_exists() -> None:
    for name, function in watched_functions():
        assert callable(function), name


@given(_INTERVALS)
def test_given_intervals_then_each_moment_counts_once(intervals: list[tuple[int, int]]) -> None:
    assert covered(intervals) == len({moment for begin, end in intervals for moment in range(begin, end)})


def test_given_a_wait_for_brokers_that_start_then_it_counts_as_starting_only() -> None:
    watch = Stopwatch()
    (waiting,) = WAITING
    with watch.measuring("Kafka brokers"), watch.measuring(waiting):
        time.sleep(0.01)

    assert set(watch.take()) == {"Kafka brokers"}


def test_the_tables_add_up_what_all_workers_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Measured("tests/unit/test_a.py::test_one", "gw0", 2.0, 1.0, {"broker (session)": 1.5}, {"Spark": 1.5})
    second = Measured("tests/unit/test_a.py::test_two", "gw1", 3.0, 0.5, {"broker (session)": 1.0}, {})
    for number, each in enumerate((first, second)):
        noted = {name: getattr(each, name) for name in each.__slots__}
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(noted) + "\n")
    (tmp_path / "session-1.json").write_text(json.dumps({"seconds": 4.0, "busy": 0.5}))

    main(tmp_path)

    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines()]
    assert ["tests/unit/test_a.py", "2", "5.0", "1.5", "1.5", "0.0", "0.0"] in lines
    assert ["broker", "(session)", "2.5"] in lines
    assert ["Spark", "1.5"] in lines
    assert "4 s on the clock, 5 s of tests; the processors were busy for 50% of the time." in shown
