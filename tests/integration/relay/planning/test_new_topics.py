"""Warnings of target topics that will keep records for less time than their source, before they are created."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.relay.run import plan_flow
from mirror_lib.relay.run_options import RunOptions
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import Record, create_topic, produce

_KEEPS_LESS = "The target keeps records for 7.0 days (retention.ms), the source without limit."


@pytest.mark.parametrize("copied", [False, True], ids=["follows-target", "is-copied"])
def test_a_topic_that_would_be_created_with_a_shorter_retention_is_warned_of(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, copied: bool
) -> None:
    # Given a topic that keeps its records for ever, and rules by which the new topic gets that or the cluster's 7 days
    create_topic(kafka_pair.source, topic_name, configs={"retention.ms": "-1"})
    produce(kafka_pair.source, topic_name, [Record(b"1")])
    settings = {} if copied else {"config.properties.exclude": "retention[.]ms"}
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=settings)
    flow.sync_internal_topics()

    # When it is planned, and then copied for the first time and once more
    planned = plan_flow(flow.config, RunOptions()).warnings
    first = flow.run()
    produce(kafka_pair.source, topic_name, [Record(b"2")])
    second = flow.run()

    # Then the plan and the first run tell of it
    expected = [] if copied else [True]
    assert (first.records, second.records) == (1, 1)
    for warnings in (planned, first.warnings):
        assert [topic_name in each for each in warnings if each.startswith(_KEEPS_LESS)] == expected
    assert not any(each.startswith(_KEEPS_LESS) for each in second.warnings)
