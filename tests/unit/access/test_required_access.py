"""What each task of a flow needs, from the flow's settings.

The rights that Kafka's requests ask for are those of Kafka's documentation, "Operations and Resources on Protocols".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from mirror_lib.config.model import FirstStart, MirrorConfig
from mirror_lib.copy.transfer.open_positions import transactional_id
from mirror_lib.features.access.model import AccessTask, RequiredAccess, Side, grants_by_cluster
from mirror_lib.features.access.required import (
    backfill_id_prefix,
    required_access,
    scheduled_access,
    transactional_id_prefix,
)
from mirror_lib.features.backfill.model import Backfill, BackfillRequest
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


#: Task -> rights on the source and on the target, with the settings of SMALL.
RIGHTS: dict[AccessTask, tuple[str, str]] = {
    AccessTask.SYNC_TOPICS: (
        "DESCRIBE, DESCRIBE_CONFIGS on topic orders; DESCRIBE, CREATE on topic mm2-offset-syncs.B.internal",
        "CREATE, ALTER on topic A.orders; READ, CREATE, DESCRIBE_CONFIGS on topic mm2-offsets.A.internal",
    ),
    AccessTask.COPY: (
        "READ on topic orders; WRITE on topic mm2-offset-syncs.B.internal",
        "WRITE on topic A.orders; READ, WRITE on topic mm2-offsets.A.internal; "
        "WRITE on transactional ids that begin with mirror:A->B:",
    ),
    AccessTask.TAKE_OVER: ("READ on topic mm2-offset-syncs.B.internal", "READ on topic A.orders"),
    AccessTask.EMIT_HEARTBEATS: ("CREATE, WRITE on topic heartbeats", "CREATE, WRITE on topic heartbeats"),
    AccessTask.CHECK_HEARTBEATS: ("", ""),
    AccessTask.SYNC_TOPIC_CONFIGS: (
        "DESCRIBE, DESCRIBE_CONFIGS on topic orders",
        "DESCRIBE, ALTER_CONFIGS on topic A.orders",
    ),
    AccessTask.SYNC_TOPIC_ACLS: ("DESCRIBE on the cluster", "ALTER on the cluster"),
    AccessTask.TRANSLATE_OFFSETS: (
        "DESCRIBE on group billing; DESCRIBE on topic orders; READ on topic mm2-offset-syncs.B.internal",
        "CREATE, READ, WRITE on topic A.checkpoints.internal; READ on topic mm2-offsets.A.internal; "
        "DESCRIBE on topic A.orders",
    ),
    # MM2's default: off.
    AccessTask.SYNC_GROUP_OFFSETS: ("", ""),
    AccessTask.VERIFY: (
        "READ, DESCRIBE_CONFIGS on topic orders",
        "READ, DESCRIBE_CONFIGS on topic A.orders; READ on topic mm2-offsets.A.internal",
    ),
    # The transactional ids are those of the run's own writers, whom it fences.
    AccessTask.DELETE_KEYS: (
        "READ, DESCRIBE_CONFIGS on topic orders",
        "READ, DESCRIBE_CONFIGS, WRITE on topic A.orders; READ, WRITE on topic mm2-offsets.A.internal; "
        "WRITE on transactional ids that begin with mirror:A->B:",
    ),
    # An interrupted run of it is compared with the source.
    AccessTask.BACKFILL: (
        "READ on topic orders",
        "READ, WRITE on topic A.orders; READ, WRITE on topic mm2-offsets.A.internal; "
        "WRITE on transactional ids that begin with mirror:A->B#backfill-",
    ),
    # It commits offsets also where runs do not.
    AccessTask.CUTOVER: (
        "ALTER on the cluster; DESCRIBE on all groups; DESCRIBE on all transactional ids; READ on all topics",
        "READ on group billing; READ on topic A.orders",
    ),
}


def _in_words(text: str) -> set[str]:
    """Each right by itself."""
    parts = [part.partition(" on ") for part in text.split("; ") if part]
    return {f"{operation} on {resource}" for operations, _, resource in parts for operation in operations.split(", ")}


def test_the_rights_of_a_task(config_with: MakeConfig) -> None:
    config = config_with(*SMALL)

    for task, (source, target) in RIGHTS.items():
        found = rights(config, task, Side.SOURCE), rights(config, task, Side.TARGET)
        assert found == (_in_words(source), _in_words(target)), task


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


@pytest.mark.parametrize(
    ("setting", "task", "needed"),
    [
        (
            "sync.group.offsets.enabled = true",
            AccessTask.SYNC_GROUP_OFFSETS,
            {"READ on group billing", "READ on topic A.orders"},
        ),
        (
            "offset-syncs.topic.location = target",
            AccessTask.COPY,
            {"WRITE on topic mm2-offset-syncs.A.internal"},
        ),
        ("B.offset.storage.topic = my-offsets", AccessTask.COPY, {"WRITE on topic my-offsets"}),
        ("mirror.poison.policy = quarantine", AccessTask.COPY, {"WRITE on topic mm2-quarantine.A.internal"}),
        ("mirror.poison.policy = quarantine", AccessTask.BACKFILL, {"WRITE on topic mm2-quarantine.A.internal"}),
    ],
)
def test_a_setting_adds_rights_on_the_target(
    config_with: MakeConfig, setting: str, task: AccessTask, needed: set[str]
) -> None:
    usual = rights(config_with(*SMALL), task, Side.TARGET)
    changed = rights(config_with(*SMALL, setting), task, Side.TARGET)

    assert changed >= needed
    assert not usual & needed
    if not usual:
        assert changed == needed


def test_offset_syncs_on_the_target_leave_the_source_unwritten(config_with: MakeConfig) -> None:
    config = config_with(*SMALL, "offset-syncs.topic.location = target", "emit.heartbeats.enabled = false")

    source = [each.grant for each in required(config) if each.side is Side.SOURCE]

    assert not [grant for grant in source if grant.operation in (Operation.WRITE, Operation.CREATE)]


def test_only_the_quarantine_policy_needs_its_topic_and_only_fencing_transactional_ids(config_with: MakeConfig) -> None:
    def quarantine(*lines: str) -> list[RequiredAccess]:
        return [each for each in required(config_with(*lines)) if each.grant.name == "mm2-quarantine.A.internal"]

    assert not quarantine()
    found = quarantine("mirror.poison.policy = quarantine")
    assert {each.grant.operation for each in found} == {Operation.DESCRIBE, Operation.CREATE, Operation.WRITE}

    # A cutover looks at the ids of the source's writers.
    used = [each for each in required(config_with("mirror.fencing = none")) if not each.hides]
    assert not [each for each in used if each.grant.resource == "transactional-id"]


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
