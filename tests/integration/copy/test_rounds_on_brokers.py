"""Rounds between real clusters: their rows in the ledger, and what is expected of the next one."""

from __future__ import annotations

import pytest

from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from tests.support.flows import Flow
from tests.support.kafka import aged
from tests.support.mirrored_topic import MirroredTopic


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    return mirrored.flow({"emit.heartbeats.enabled": "false"})


def test_each_round_has_a_row_and_the_next_plan_an_expectation(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(partitions=2)
    mirrored.produce(aged(2_000, age=600))

    first = flow.run()
    mirrored.produce(aged(1_000, age=60))
    second = flow.run()
    idle = flow.run()

    rows = {row.run_id: row for row in flow.ledger.rounds("A->B")}
    assert set(rows) == {first.run_id, second.run_id, idle.run_id}
    row = rows[first.run_id]
    assert (row.records, row.lag_records, row.bytes, row.tasks) == (2_000, 2_000, first.bytes, 1)
    assert row.lag_bytes is not None
    assert row.expected_seconds is None
    assert row.oldest_age_ms is not None
    assert row.oldest_age_ms >= 598_000
    assert min(row.planning_seconds, row.opening_seconds, row.copying_seconds, row.committing_seconds) > 0
    assert rows[second.run_id].expected_seconds is not None
    assert rows[idle.run_id].partitions == 0
    assert [each.number for each in first.round_lags] == [1]
    assert first.to_dict()["round_lags"][0]["oldest_age_ms"] == row.oldest_age_ms
    assert idle.round_lags == ()

    mirrored.produce(aged(500, age=1))
    expected = plan_flow(flow.config, RunOptions(), flow.ledger).expected

    assert expected.rounds == 2
    assert expected.bytes is not None
    assert expected.seconds is not None
    assert expected.seconds >= 0
