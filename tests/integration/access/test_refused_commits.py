"""What the target refuses of a group's offsets is told with its reason, and not as due."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mirror_lib.access.model import AccessTask, grants_by_cluster
from mirror_lib.cli.main import app
from mirror_lib.topology.access import Operation, Resource
from tests.support.security.restricted import RestrictedPair, new_world
from tests.support.security.restricted_tasks import TASKS


def test_a_refused_commit_is_told_by_apply_and_status(restricted_pair: RestrictedPair, tmp_path: Path) -> None:
    task = TASKS[AccessTask.SYNC_GROUP_OFFSETS]
    url = {"mirror.ledger.url": f"sqlite:///{tmp_path}/ledger-NUMBER.sqlite3"}
    world = new_world(restricted_pair, tmp_path, {**task.settings, **url})
    task.prepare(world)
    wanted = [
        each
        for each in task.needs(AccessTask.SYNC_GROUP_OFFSETS, world)
        if not (
            each.cluster == world.target_alias
            and each.grant.resource is Resource.GROUP
            and each.grant.operation is Operation.READ
        )
    ]

    def say(verb: str) -> tuple[int, dict[str, Any]]:
        result = CliRunner().invoke(
            app, ["groups", verb, "--config", str(world.named.path), "--flow", world.name, "--json"]
        )
        return result.exit_code, json.loads(result.stdout)

    granted = grants_by_cluster(wanted)
    # To see the group is not to move it.
    seen = [each.grant for each in task.needs(AccessTask.SYNC_GROUP_OFFSETS, world) if each not in wanted]
    granted[world.target_alias] = (
        *granted[world.target_alias],
        *(replace(each, operation=Operation.DESCRIBE) for each in seen),
    )
    with restricted_pair.granting(world.flow, granted):
        applied = say("apply")
        looked = say("status")

    for code, told in (applied, looked):
        assert code == 3
        assert told["reasons"] == {"refused": 1}
        (row,) = told["not_in_sync"]
        assert "READ on group" in row["what"]
    # When the right is there again, nothing is stored that stands in the way.
    with restricted_pair.granting(world.flow, grants_by_cluster(task.needs(AccessTask.SYNC_GROUP_OFFSETS, world))):
        assert say("apply")[0] == 0
        assert say("status")[1]["reasons"] == {"in-sync": 1}
