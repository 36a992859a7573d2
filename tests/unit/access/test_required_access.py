"""What each task of a flow needs, from the flow's settings.

The rights that Kafka's requests ask for are those of Kafka's documentation, "Operations and Resources on Protocols".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from mirror_lib.access.model import AccessTask, RequiredAccess, Side, grants_by_cluster
from mirror_lib.access.required import (
    backfill_id_prefix,
    required_access,
    scheduled_access,
    transactional_id_prefix,
)
from mirror_lib.config.model import FirstStart, MirrorConfig
from mirror_lib.relay.backfill.model import Backfill, BackfillRequest
from mirror_lib.relay.copy.open_positions import transactional_id
from mirror_lib.topology.access import Grant, Operation, without_covered
from mirror_lib.topology.names import TopicPartition

MakeConfig = Callable[..., MirrorConfig]
#: Few names, so that all rights of a task can be written down.
SMALL = ("topics = orders", "groups = billing", "heartbeats.replication.enabled = false")


def required(config: MirrorConfig) -> tuple[RequiredAccess, ...]:
    return required_access(config, config.flow("A->B"))


def rights(config: MirrorConfig, task: AccessTask, side: Side) -> set[str]:
    """In words, without what only old brokers ask for."""
    return {
        str(each.grant) for each in required(config) if (each.task, each.side) == (task, side) and each.before is None
    }


@pytest.mark.parametrize(
    ("task", "source", "target"),
    [
        (
            AccessTask.SYNC_TOPICS,
            {
                "DESCRIBE on topic orders",
                "DESCRIBE_CONFIGS on topic orders",
                "DESCRIBE on topic mm2-offset-syncs.B.internal",
                "CREATE on topic mm2-offset-syncs.B.internal",
            },
            {
                "CREATE on topic A.orders",
                "ALTER on topic A.orders",
                "READ on topic mm2-offsets.A.internal",
                "CREATE on topic mm2-offsets.A.internal",
                "DESCRIBE_CONFIGS on topic mm2-offsets.A.internal",
            },
        ),
        (
            AccessTask.COPY,
            {"READ on topic orders", "WRITE on topic mm2-offset-syncs.B.internal"},
            {
                "WRITE on topic A.orders",
                "READ on topic mm2-offsets.A.internal",
                "WRITE on topic mm2-offsets.A.internal",
                "WRITE on transactional ids that begin with mirror:A->B:",
            },
        ),
        (
            AccessTask.TAKE_OVER,
            {"READ on topic mm2-offset-syncs.B.internal"},
            {"READ on topic A.orders"},
        ),
        (
            AccessTask.EMIT_HEARTBEATS,
            {"CREATE on topic heartbeats", "WRITE on topic heartbeats"},
            {"CREATE on topic heartbeats", "WRITE on topic heartbeats"},
        ),
        (AccessTask.CHECK_HEARTBEATS, set(), set()),
        (
            AccessTask.SYNC_TOPIC_CONFIGS,
            {"DESCRIBE on topic orders", "DESCRIBE_CONFIGS on topic orders"},
            {"DESCRIBE on topic A.orders", "ALTER_CONFIGS on topic A.orders"},
        ),
        (AccessTask.SYNC_TOPIC_ACLS, {"DESCRIBE on the cluster"}, {"ALTER on the cluster"}),
        (
            AccessTask.TRANSLATE_OFFSETS,
            {
                "DESCRIBE on group billing",
                "DESCRIBE on topic orders",
                "READ on topic mm2-offset-syncs.B.internal",
            },
            {
                "CREATE on topic A.checkpoints.internal",
                "READ on topic A.checkpoints.internal",
                "WRITE on topic A.checkpoints.internal",
                "READ on topic mm2-offsets.A.internal",
                "DESCRIBE on topic A.orders",
            },
        ),
        # MM2's default: off.
        (AccessTask.SYNC_GROUP_OFFSETS, set(), set()),
        (
            AccessTask.VERIFY,
            {"READ on topic orders", "DESCRIBE_CONFIGS on topic orders"},
            {"READ on topic A.orders", "DESCRIBE_CONFIGS on topic A.orders", "READ on topic mm2-offsets.A.internal"},
        ),
        (
            AccessTask.DELETE_KEYS,
            {"READ on topic orders", "DESCRIBE_CONFIGS on topic orders"},
            {
                "READ on topic A.orders",
                "DESCRIBE_CONFIGS on topic A.orders",
                "WRITE on topic A.orders",
                "READ on topic mm2-offsets.A.internal",
                "WRITE on topic mm2-offsets.A.internal",
                # As the run's own writers, whom it fences.
                "WRITE on transactional ids that begin with mirror:A->B:",
            },
        ),
        (
            AccessTask.BACKFILL,
            {"READ on topic orders"},
            {
                # An interrupted run of it is compared with the source.
                "READ on topic A.orders",
                "WRITE on topic A.orders",
                "READ on topic mm2-offsets.A.internal",
                "WRITE on topic mm2-offsets.A.internal",
                "WRITE on transactional ids that begin with mirror:A->B#backfill-",
            },
        ),
        (
            AccessTask.CUTOVER,
            {
                "ALTER on the cluster",
                "DESCRIBE on all groups",
                "DESCRIBE on all transactional ids",
                "READ on all topics",
            },
            # It commits offsets also where runs do not.
            {"READ on group billing", "READ on topic A.orders"},
        ),
    ],
)
def test_the_rights_of_a_task(config_with: MakeConfig, task: AccessTask, source: set[str], target: set[str]) -> None:
    config = config_with(*SMALL)

    assert (rights(config, task, Side.SOURCE), rights(config, task, Side.TARGET)) == (source, target)


def test_a_task_that_is_switched_off_needs_nothing(config_with: MakeConfig) -> None:
    usual = {each.task for each in required(config_with())}
    for setting, task in {
        "sync.topic.configs.enabled = false": AccessTask.SYNC_TOPIC_CONFIGS,
        "sync.topic.acls.enabled = false": AccessTask.SYNC_TOPIC_ACLS,
        "emit.checkpoints.enabled = false": AccessTask.TRANSLATE_OFFSETS,
        "emit.offset-syncs.enabled = false": AccessTask.TRANSLATE_OFFSETS,
        "emit.heartbeats.enabled = false": AccessTask.EMIT_HEARTBEATS,
    }.items():
        assert task in usual
        assert not any(each.task is task for each in required(config_with(setting))), setting


def test_groups_are_committed_for_where_that_is_switched_on(config_with: MakeConfig) -> None:
    config = config_with(*SMALL, "sync.group.offsets.enabled = true")

    found = rights(config, AccessTask.SYNC_GROUP_OFFSETS, Side.TARGET)

    assert found == {"READ on group billing", "READ on topic A.orders"}


def test_offset_syncs_on_the_target_leave_the_source_unwritten(config_with: MakeConfig) -> None:
    config = config_with(*SMALL, "offset-syncs.topic.location = target", "emit.heartbeats.enabled = false")

    source = [each.grant for each in required(config) if each.side is Side.SOURCE]

    assert not [grant for grant in source if grant.operation in (Operation.WRITE, Operation.CREATE)]
    assert "WRITE on topic mm2-offset-syncs.A.internal" in rights(config, AccessTask.COPY, Side.TARGET)


def test_only_the_quarantine_policy_needs_its_topic_to_which_all_tasks_that_copy_write(config_with: MakeConfig) -> None:
    def quarantine(*lines: str) -> list[RequiredAccess]:
        return [each for each in required(config_with(*lines)) if each.grant.name == "mm2-quarantine.A.internal"]

    assert not quarantine()
    found = quarantine("mirror.poison.policy = quarantine")
    assert {each.grant.operation for each in found} == {Operation.DESCRIBE, Operation.CREATE, Operation.WRITE}
    config = config_with(*SMALL, "mirror.poison.policy = quarantine")
    for task in (AccessTask.COPY, AccessTask.BACKFILL):
        assert "WRITE on topic mm2-quarantine.A.internal" in rights(config, task, Side.TARGET)


def test_without_fencing_no_transactional_ids_are_used(config_with: MakeConfig) -> None:
    found = required(config_with("mirror.fencing = none"))

    # A cutover looks at those of the source's writers.
    used = [each for each in found if not each.hides]
    assert not [each for each in used if each.grant.resource == "transactional-id"]


def test_another_position_topic_is_named(config_with: MakeConfig) -> None:
    config = config_with("B.offset.storage.topic = my-offsets")

    assert "WRITE on topic my-offsets" in rights(config, AccessTask.COPY, Side.TARGET)


def test_transactional_ids_of_a_flow_and_of_its_backfills_begin_as_their_rights_say(config_with: MakeConfig) -> None:
    flow, place = config_with().flow("A->B"), TopicPartition("A.orders", 3)
    request = BackfillRequest(flow.flow, ("orders",), FirstStart(reset="earliest"), FirstStart(reset="latest"))
    backfill = Backfill("x", request, into_live=True, ranges=(), created_at=datetime(2024, 5, 1, tzinfo=UTC))

    assert transactional_id(flow.flow, place).startswith(transactional_id_prefix(flow))
    assert transactional_id(backfill.flow, place).startswith(backfill_id_prefix(flow))


def test_nothing_is_listed_that_another_right_of_the_task_brings_along(config_with: MakeConfig) -> None:
    found = required(config_with("mirror.poison.policy = quarantine", "sync.group.offsets.enabled = true"))

    for task in AccessTask:
        for side in Side:
            grants = [each.grant for each in found if (each.task, each.side) == (task, side)]
            assert sorted(grants) == sorted(without_covered(grants))


def test_together_the_rights_of_all_tasks_say_nothing_twice(config_with: MakeConfig) -> None:
    granted = grants_by_cluster(required(config_with()))

    # Reading brings describing along, and altering the cluster describing it.
    everything = [grant for grant in granted["A"] if grant.is_any and grant.resource == "topic"]
    assert {grant.operation for grant in everything} == {Operation.READ, Operation.DESCRIBE_CONFIGS}
    assert Grant.on_cluster(Operation.DESCRIBE) not in granted["B"]


def test_only_what_runs_by_itself_is_scheduled(config_with: MakeConfig) -> None:
    def tasks(*lines: str) -> set[AccessTask]:
        config = config_with(*lines)
        return {each.task for each in scheduled_access(config.flow("A->B"), required(config))}

    assert not {AccessTask.CUTOVER, AccessTask.BACKFILL, AccessTask.DELETE_KEYS, AccessTask.VERIFY} & tasks()
    assert AccessTask.VERIFY in tasks("mirror.verify.schedule = @daily")
