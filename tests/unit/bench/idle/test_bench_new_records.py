"""The parts of a record's delay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mirror_lib.dev.airflow_api import TaskTimes
from tools.bench.idle.new_records import PARTS, Delay

WRITTEN = datetime(2026, 11, 27, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return WRITTEN + timedelta(seconds=seconds)


def test_a_delay_is_divided_at_the_starts_and_ends_of_the_two_tasks() -> None:
    tasks = {
        "preflight": TaskTimes(after(3), after(4)),
        "sync_topics": TaskTimes(None, after(4)),
        "replicate": TaskTimes(after(7), after(30)),
    }

    delay = Delay.between(WRITTEN.timestamp(), after(12).timestamp(), after(1), tasks)

    assert [getattr(delay, part) for part in PARTS] == pytest.approx([1, 2, 1, 3, 5])
    assert delay.total == pytest.approx(12)
