"""A target that allows nobody transactional ids, as some managed services: what a run says, and its way on."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.access.model import AccessTask, grants_by_cluster
from mirror_lib.topology.access import Resource
from tests.support.kafka import consume
from tests.support.security.restricted import RestrictedPair, new_world
from tests.support.security.restricted_tasks import TASKS


def test_a_copy_without_transactional_ids_names_the_setting_that_copies_without_them(
    restricted_pair: RestrictedPair, tmp_path: Path
) -> None:
    # Given a target on which the user may do everything but use transactional ids,
    task = TASKS[AccessTask.COPY]

    def told(settings: dict[str, str]) -> tuple[list[str], int]:
        world = new_world(restricted_pair, tmp_path, {**task.settings, **settings})
        task.prepare(world)
        rights = [
            each for each in task.needs(AccessTask.COPY, world) if each.grant.resource is not Resource.TRANSACTIONAL_ID
        ]
        with restricted_pair.granting(world.flow, grants_by_cluster(rights)):
            said = task.do(world, world.named, world.flow)
        return said, len(consume(restricted_pair.target.cluster, f"{world.source_alias}.{world.orders}"))

    # when a run copies, then it says what to set,
    said, copied = told({})
    assert said
    assert all("set mirror.fencing=none" in each for each in said)
    assert copied == 0
    # and with that it copies.
    said, copied = told({"mirror.fencing": "none"})
    assert said == []
    assert copied > 0
