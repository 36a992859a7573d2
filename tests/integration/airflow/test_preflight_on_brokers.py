"""What the DAG's first task says about clusters that are there."""

from __future__ import annotations

import logging
import time

import pytest

from mirror_lib.airflow.flow import check
from mirror_lib.copy.job.arguments import JobArguments
from tests.support.kafka import Record, set_config
from tests.support.mirrored_topic import MirroredTopic


def test_records_that_retention_may_delete_before_the_copy_are_told(
    mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    now = int(time.time() * 1000)
    mirrored.create()
    # The young record keeps the segment.
    old, young = Record(value=b"old", timestamp_ms=now - 7_200_000), Record(value=b"young", timestamp_ms=now)
    mirrored.produce([old, young])
    set_config(mirrored.source, mirrored.name, "retention.ms", "3600000")
    flow = mirrored.flow()

    with caplog.at_level(logging.WARNING):
        check.check_flow(JobArguments(flow.path, "A->B"))

    told = [record.getMessage() for record in caplog.records if "retention" in record.getMessage()]
    assert len(told) == 1
    losing = "1 partition may lose records, or deletions of compacted topics, before they are copied"
    assert f"{losing}: {mirrored.name}-0." in told[0]
    assert "Run the flow soon" in told[0]
