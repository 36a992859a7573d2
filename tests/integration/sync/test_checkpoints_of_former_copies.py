"""A checkpoint is true of the copy that it was written for: after a copy into a new target topic it counts no more."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.checkpoints import read_checkpoints
from mirror_lib.sync.topics.internal import checkpoints_topic
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.flows import Flow
from tests.support.kafka import admin, delete_records, delete_topic, records
from tests.support.mirrored_topic import MirroredTopic

TRUE_OFFSET = 200


def last_checkpoint(flow: Flow, group: str) -> tuple[int, int]:
    connection = Connection.from_settings(flow.config.clients.target_internal)
    found = read_checkpoints(connection, checkpoints_topic(flow.config).name)
    (*_, newest) = (each for each in found.entries if each.group == group)
    return newest.upstream_offset, newest.downstream_offset


def command(flow: Flow, *words: str) -> int:
    return CliRunner().invoke(app, [*words, "--config", str(flow.path), "--flow", "A->B"]).exit_code


@pytest.fixture(params=["mm2", "exact"])
def copied_again(request: pytest.FixtureRequest, mirrored: MirroredTopic) -> Flow:
    """A group at source offset 500, which was target offset 500 and is 200 after the target topic was copied again."""
    group = f"{mirrored.name}-group"
    mirrored.create(records(600))
    settings = {
        "A->B.groups": group,
        "A->B.sync.group.offsets.enabled": "true",
        "A->B.mirror.group.translation": request.param,
        "checkpoints.topic.replication.factor": "1",
        "offset.lag.max": "0",
    }
    flow = mirrored.flow(settings)
    flow.run()
    commit_offset(mirrored.source, group, mirrored.name, 500)
    assert command(flow, "groups", "apply") == 0
    assert last_checkpoint(flow, group)[1] > TRUE_OFFSET
    delete_records(mirrored.source, mirrored.name, before=300)
    delete_topic(mirrored.target, mirrored.remote)
    assert [error.reason for error in flow.run().errors] == ["target-deleted"]
    assert command(flow, "gaps", "recopy", "--topic", mirrored.name, "--yes") == 0
    assert flow.run().records == 300
    return flow


def test_given_a_target_that_was_copied_again_then_the_group_and_its_checkpoint_follow_the_new_copy(
    mirrored: MirroredTopic, copied_again: Flow
) -> None:
    group = f"{mirrored.name}-group"

    assert command(copied_again, "groups", "apply") == 0

    assert last_checkpoint(copied_again, group)[1] <= TRUE_OFFSET
    # The log grows past the former offset, and nothing of it comes back.
    mirrored.produce(records(300, start=600))
    copied_again.run()
    assert command(copied_again, "groups", "apply") == 0
    assert last_checkpoint(copied_again, group)[1] <= TRUE_OFFSET
    committed = committed_offsets(mirrored.target, group)[mirrored.remote, 0]
    assert committed == TRUE_OFFSET if copied_again.config.group_translation == "exact" else committed <= TRUE_OFFSET


def test_given_a_group_that_is_gone_at_the_source_then_its_former_checkpoint_is_replaced_as_well(
    mirrored: MirroredTopic, copied_again: Flow
) -> None:
    group = f"{mirrored.name}-group"
    admin(mirrored.source).delete_consumer_groups([group])[group].result(30)

    assert command(copied_again, "groups", "apply") == 0

    assert last_checkpoint(copied_again, group)[1] == 0
