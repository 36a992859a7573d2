"""The rules behind the page: how long an interval is, and how a flow is in one word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from mirror_lib.features.page.flow import thin
from mirror_lib.features.page.flow_state import FlowFacts, Level, judge
from mirror_lib.features.page.flows import longest_wait_seconds
from mirror_lib.ledger.rows import RunRow
from tests.support.ledger.rows import NOON, observed_flow

SEEN = observed_flow(lagging=0)
RUN = RunRow(id="r", flow="a->b", trigger="cli", state="succeeded", started_at=NOON, heartbeat_at=NOON)
FINE = FlowFacts(now=NOON + timedelta(minutes=4), stale_after_seconds=900, observation=SEEN, run=RUN)


def test_the_longest_wait_for_a_run_is_that_of_the_schedule_and_at_least_a_minute() -> None:
    for schedule, seconds in {
        None: None,
        "@once": None,
        "5m": 300,
        "2h": 7200,
        "1s": 60,
        "@continuous": 60,
        "0 9 * * mon-fri": 3 * 86_400,
        "0 0 1 * *": 31 * 86_400,
    }.items():
        assert longest_wait_seconds(schedule) == seconds, schedule


def test_the_worst_that_is_known_is_the_state() -> None:
    for changed, level, word in (
        ({}, Level.OK, "up to date"),
        ({"observation": replace(SEEN, outlook="already-lost")}, Level.DANGER, "records lost"),
        ({"observation": replace(SEEN, outlook="will-be-lost")}, Level.DANGER, "falling behind"),
        ({"observation": replace(SEEN, outlook="tight")}, Level.WARNING, "tight"),
        ({"observation": replace(SEEN, stalled=1)}, Level.DANGER, "stalled"),
        ({"observation": replace(SEEN, records_behind=9)}, Level.OK, "small lag"),
        ({"open_gaps": 2}, Level.DANGER, "decision needed"),
        ({"different": 1}, Level.DANGER, "differs"),
        ({"failed_steps": 1}, Level.WARNING, "sync step failed"),
        ({"broken": True, "run": None, "observation": None}, Level.DANGER, "broken file"),
        ({"run": replace(RUN, state="failed")}, Level.DANGER, "failed"),
        ({"run": replace(RUN, state="partial")}, Level.WARNING, "partly failed"),
        # Busy with a plan of very many partitions.
        ({"run": replace(RUN, state="running", heartbeat_at=NOON - timedelta(hours=1))}, Level.OK, "copying"),
        ({"run": replace(RUN, state="running"), "died": True}, Level.WARNING, "run died"),
        ({"now": NOON + timedelta(minutes=16)}, Level.WARNING, "overdue"),
        ({"paused": True}, Level.IDLE, "paused"),
        ({"paused": None}, Level.IDLE, "no DAG"),
        ({"run": None, "observation": None}, Level.IDLE, "never ran"),
        ({"observation": None}, Level.IDLE, "not observed"),
        # Not overdue.
        ({"paused": True, "now": NOON + timedelta(days=3)}, Level.IDLE, "paused"),
    ):
        state = judge(replace(FINE, **changed))  # type: ignore[arg-type]
        assert (state.level, state.word) == (level, word)


def test_all_reasons_are_told_the_worst_first() -> None:
    state = judge(replace(FINE, open_gaps=1, failed_steps=1, paused=True))

    assert [reason.split(":")[0] for reason in state.reasons] == [
        "1 open gap needs a decision.",
        "A sync step failed",
        "The flow's DAG is paused",
    ]


def test_a_long_history_keeps_its_peaks_and_its_newest_point() -> None:
    rows = [replace(SEEN, observed_at=NOON + timedelta(minutes=each), records_behind=0) for each in range(5000)]
    rows[1234] = replace(rows[1234], records_behind=99)

    kept = thin(rows, 400)

    assert len(kept) <= 400
    assert rows[1234] in kept
    assert kept[-1] == rows[-1]
