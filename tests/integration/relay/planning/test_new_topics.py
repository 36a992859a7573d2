"""Warnings of target topics that will keep records for less time than their source, before they are created."""

from __future__ import annotations

import pytest

from mirror_lib.relay.run import plan_flow
from mirror_lib.relay.run_options import RunOptions
from tests.support.kafka import Record
from tests.support.mirrored_topic import MirroredTopic

_KEEPS_LESS = "The target keeps records for 7.0 days (retention.ms), the source without limit."


@pytest.mark.parametrize("copied", [False, True], ids=["follows-target", "is-copied"])
def test_a_topic_that_would_be_created_with_a_shorter_retention_is_warned_of(
    mirrored: MirroredTopic, copied: bool
) -> None:
    # Given a topic that keeps its records for ever, and rules by which the new topic gets that or the cluster's 7 days
    mirrored.create(configs={"retention.ms": "-1"})
    mirrored.produce([Record(b"1")])
    settings = {} if copied else {"config.properties.exclude": "retention[.]ms"}
    flow = mirrored.flow(settings)
    flow.sync_internal_topics()

    # When it is planned, and then copied for the first time and once more
    planned = plan_flow(flow.config, RunOptions()).warnings
    first = flow.run()
    mirrored.produce([Record(b"2")])
    second = flow.run()

    # Then the plan and the first run tell of it
    expected = [] if copied else [True]
    assert (first.records, second.records) == (1, 1)
    for warnings in (planned, first.warnings):
        assert [mirrored.name in each for each in warnings if each.startswith(_KEEPS_LESS)] == expected
    assert not any(each.startswith(_KEEPS_LESS) for each in second.warnings)
