"""Forecasts of real topics: what brokers tell about age, size and configs, and what runs left in the ledger."""

from __future__ import annotations

import pytest

from mirror_lib.copy.run_options import RunOptions
from mirror_lib.features.forecast.plan import forecast_flow
from mirror_lib.features.forecast.verdicts import PartitionForecast
from mirror_lib.past_runs.outlooks import Outlook
from tests.support.flows import Flow
from tests.support.kafka import aged, set_config
from tests.support.mirrored_topic import MirroredTopic

HOUR = 3_600


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    return mirrored.flow({"mirror.schedule": "1m"})


def only(flow: Flow) -> PartitionForecast:
    (found,) = forecast_flow(flow.config, RunOptions(), flow.ledger).partitions
    return found


def test_a_flow_that_keeps_up_with_a_topic_of_a_day_is_well(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(configs={"retention.ms": str(24 * HOUR * 1000)})
    mirrored.produce(aged(500, age=2 * HOUR))
    flow.run()
    mirrored.produce(aged(400, age=0.5 * HOUR))
    mirrored.produce(aged(200, age=60))

    found = only(flow)

    assert (found.outlook, found.lag) == (Outlook.OK, 600)
    # All of it is younger than a quarter of a day.
    assert found.deleted_by_time_seconds == pytest.approx(18 * HOUR)
    assert found.deleted_by_size_seconds == float("inf")
    # 600 in the last hour, of which 200 in the last ten minutes.
    assert found.writes_per_second == pytest.approx(200 / 600, rel=0.01)
    assert found.catch_up_seconds is not None
    assert found.lag_bytes is not None
    assert 500_000 < found.lag_bytes < 800_000


def test_records_past_retention_are_told_before_a_broker_deletes_them(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create()
    mirrored.produce(aged(100, age=2 * HOUR))
    # A young record keeps the segment.
    mirrored.produce(aged(1, age=0))
    assert only(flow).outlook is Outlook.OK

    set_config(mirrored.source, mirrored.name, "retention.ms", str(HOUR * 1000))
    found = only(flow)

    assert (found.outlook, found.deleted_by_time_seconds) == (Outlook.TIGHT, 0)
    assert "at any time" in found.reason
