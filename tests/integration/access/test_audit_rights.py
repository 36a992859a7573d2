"""What an audit needs on clusters with authorizers, and the ACLs that it misses on the copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding

from mirror_lib.features.access.model import AccessTask
from mirror_lib.features.audit.clusters import clusters_of_flow
from mirror_lib.features.audit.model import AuditReport, Verdict
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.run import audit
from mirror_lib.topology.access import Grant, Operation
from tests.support.clusters import start_together
from tests.support.security.restricted import Granter, RestrictedPair, World, binding, new_world, restricted_cluster
from tests.support.security.restricted_tasks import TASKS

_READING = (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)


@pytest.fixture(scope="module")
def restricted_pair(kafka_jars: Path, brokers_folder: Path) -> Iterator[RestrictedPair]:
    """Two single-broker clusters with authorizers."""
    source, target = (
        restricted_cluster(name, brokers_folder / "audit-rights", kafka_jars) for name in ("asked-a", "asked-b")
    )
    with start_together(source, target):
        yield RestrictedPair(Granter(source), Granter(target))


def audited(world: World, *more: Grant) -> AuditReport:
    """An audit by a user who may read the topics, and this."""
    remote = f"{world.source_alias}.{world.orders}"
    grants = {
        alias: (*(Grant.on_topic(each, topic) for each in _READING), *more)
        for alias, topic in ((world.source_alias, world.orders), (world.target_alias, remote))
    }
    source, target, rules = clusters_of_flow(Path(world.named.path), world.name)
    options = AuditOptions(lambda topic: topic == world.orders, rules=rules, wait_seconds=0)
    with world.pair.granting(world.flow, grants):
        return audit(source, target, options)


def test_given_the_right_to_read_alone_then_records_are_judged_and_what_is_not_is_said(
    restricted_pair: RestrictedPair, tmp_path: Path
) -> None:
    world = new_world(restricted_pair, tmp_path)
    TASKS[AccessTask.VERIFY].prepare(world)

    report = audited(world)

    assert report.verdict is Verdict.EQUAL
    assert report.equal > 0
    (note,) = report.notes
    assert note.startswith("ACLs are not compared: ")
    assert "DESCRIBE on the cluster" in note


def test_given_an_acl_that_the_copy_lacks_then_it_is_named_and_counts_with_strict(
    restricted_pair: RestrictedPair, tmp_path: Path
) -> None:
    world = new_world(restricted_pair, tmp_path)
    TASKS[AccessTask.VERIFY].prepare(world)
    granted = [binding(Grant.on_topic(each, world.orders), "reader") for each in (Operation.READ, Operation.WRITE)]
    create(restricted_pair.source, granted)

    report = audited(world, Grant.on_cluster(Operation.DESCRIBE))

    # The audit's own user has the same rights on both sides, and who may write a topic may not write its copy.
    remote = f"{world.source_alias}.{world.orders}"
    assert [(each.topic, each.what, each.source, each.target) for each in report.differences] == [
        (remote, f"allow User:reader READ on topic {remote}", "present", "absent")
    ]
    assert (report.exit_code(), report.exit_code(strict=True)) == (0, 3)


def create(granter: Granter, acls: list[AclBinding]) -> None:
    for each in granter.client.create_acls(acls).values():
        each.result(timeout=20)
