"""Every task works with just what `required_access` lists for it, and names what is missing when one right is.

The rights of a task are taken away one at a time. If nothing failed then, the right was none that the task needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.errors import MirrorError
from mirror_lib.features.access.model import ON_DEMAND, AccessTask, RequiredAccess, grants_by_cluster
from mirror_lib.features.access.required import scheduled_access
from mirror_lib.features.cutover.dependency_facts import read_belonging
from mirror_lib.features.cutover.scope import ScopeTopic
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.topology.access import Grant, Operation, Resource
from mirror_lib.topology.acls import AclPattern
from tests.support.clusters import start_together
from tests.support.kafka import (
    consume,
    create_topic,
    delete_records,
    delete_topics,
    produce,
    records,
    set_config,
    transaction,
    watermarks,
)
from tests.support.names import unique_name
from tests.support.security.restricted import (
    Granter,
    RestrictedPair,
    World,
    example_rights,
    new_world,
    restricted_cluster,
)
from tests.support.security.restricted_tasks import TASKS, delete_lost_keys, lose_deletions, verified

#: What errors say: an operation, on what, and on which cluster.
_SAID = re.compile(r"needs (\w+) on (?:(topic|group|transactional id) (\S+) of cluster (\w+)|the cluster (\w+))")


@pytest.fixture(scope="module")
def restricted_pair(kafka_jars: Path, brokers_folder: Path) -> Iterator[RestrictedPair]:
    """Two single-broker clusters with authorizers."""
    folder = brokers_folder / unique_name("restricted")
    source, target = (restricted_cluster(name, folder, kafka_jars) for name in ("restricted-a", "restricted-b"))
    with start_together(source, target):
        yield RestrictedPair(Granter(source), Granter(target))


@pytest.fixture(autouse=True)
def _no_topics_for_the_next_test(restricted_pair: RestrictedPair) -> Iterator[None]:
    """Each test has a world of its own, and a hundred worlds would slow down the last ones."""
    yield
    for granter in (restricted_pair.source, restricted_pair.target):
        delete_topics(granter.cluster)


def _try(world: World, task: AccessTask, grants: dict[str, tuple[Grant, ...]]) -> list[str]:
    """What the task tells of trouble when the user may do this alone."""
    with world.pair.granting(world.flow, grants):
        try:
            return TASKS[task].do(world, world.named, world.flow)
        except MirrorError as error:
            return [str(error)]


def _world(pair: RestrictedPair, folder: Path, task: AccessTask, operation: Operation | None = None) -> World:
    """A flow of which the task has something to do."""
    world = new_world(pair, folder, TASKS[task].settings)
    _preparation(task, operation)(world)
    return world


def _preparation(task: AccessTask, operation: Operation | None) -> Callable[[World], None]:
    about = TASKS[task]
    return about.prepare if operation is None else about.prepare_for.get(operation, about.prepare)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_needs_no_more_than_its_rights(
    task: AccessTask, restricted_pair: RestrictedPair, tmp_path: Path
) -> None:
    for operation in (None, *TASKS[task].prepare_for):
        world = _world(restricted_pair, tmp_path, task, operation)

        told = _try(world, task, grants_by_cluster(TASKS[task].needs(task, world)))

        assert told == []


def _rights(task: AccessTask, world: World) -> list[RequiredAccess]:
    return [each for each in world.required if each.task is task]


def _seen(grant: Grant) -> Grant:
    """What still shows the resource to whoever lacks the grant."""
    return replace(grant, operation=Operation.DESCRIBE)


@dataclass
class _Worlds:
    """Flows of one task. A task that is refused leaves its flow as it was, as a rule, so that one serves many tries."""

    pair: RestrictedPair
    folder: Path
    task: AccessTask
    used: dict[Callable[[World], None], World] = field(default_factory=dict)

    def told_without(self, place: int, operation: Operation, *, seen: bool) -> tuple[list[str], RequiredAccess]:
        """What the task tells when it lacks the right at this place of the list, and the right.

        A flow that other tries have changed may not need the right any more: then a new flow decides.
        """
        preparation = _preparation(self.task, operation)
        if preparation in self.used:
            told, missing = self._try_in(self.used[preparation], place, seen=seen)
            if _names(told, missing, exactly=seen):
                return told, missing
        self.used[preparation] = _world(self.pair, self.folder, self.task, operation)
        return self._try_in(self.used[preparation], place, seen=seen)

    def _try_in(self, world: World, place: int, *, seen: bool) -> tuple[list[str], RequiredAccess]:
        missing = _rights(self.task, world)[place]
        others = [each for each in TASKS[self.task].needs(self.task, world) if each != missing]
        left = [replace(missing, grant=_seen(missing.grant))] if seen else []
        return _try(world, self.task, grants_by_cluster([*others, *left])), missing


@pytest.mark.timeout(600)
@pytest.mark.parametrize("task", TASKS)
def test_a_right_that_is_missing_is_named_even_where_the_topic_can_be_seen(
    task: AccessTask, restricted_pair: RestrictedPair, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    worlds = _Worlds(restricted_pair, tmp_path, task)
    # Known without clusters; the places in the list are the same for all flows of these tests.
    examples = [each for each in example_rights(TASKS[task].settings) if each.task is task]
    for place, each in enumerate(examples):
        # Nothing can name what brokers leave out in silence.
        if each.hides:
            continue
        with subtests.test(f"{each.side} {each.grant}"):
            told, missing = worlds.told_without(place, each.grant.operation, seen=False)

            assert _names(told, missing), told
            assert all("mirror acls required" in text for text in told if "needs" in text), told
        # Rights that come with DESCRIBE
        if each.grant != _seen(each.grant) and each.grant.covers(_seen(each.grant)):
            with subtests.test(f"{each.side} {each.grant}, but for DESCRIBE"):
                told, missing = worlds.told_without(place, each.grant.operation, seen=True)

                assert _names(told, missing, exactly=True), told


def test_runs_need_no_more_than_the_commands_grant(restricted_pair: RestrictedPair, tmp_path: Path) -> None:
    patterns = {"topics": "orders-NUMBER.*", "groups": "billing-NUMBER.*", "heartbeats.replication.enabled": "true"}
    world = new_world(restricted_pair, tmp_path, patterns)
    TASKS[AccessTask.SYNC_GROUP_OFFSETS].prepare(world)
    grants = grants_by_cluster(scheduled_access(world.flow, world.required))

    told = {task: _try(world, task, grants) for task in TASKS if task not in ON_DEMAND}

    assert not any(told.values()), told


def test_a_topic_that_only_a_regex_selects_is_missed_once_it_was_copied(
    restricted_pair: RestrictedPair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = new_world(restricted_pair, tmp_path, {"topics": "orders-NUMBER[0-9]*"})
    TASKS[AccessTask.VERIFY].prepare(world)
    positions_only = [each for each in world.required if each.task in (AccessTask.COPY, AccessTask.VERIFY)]
    source_topics = [each for each in positions_only if each.grant.name.startswith("orders-")]
    grants = grants_by_cluster(each for each in positions_only if each not in source_topics)

    copied = _try(world, AccessTask.COPY, grants)
    _try(world, AccessTask.VERIFY, grants)

    # It may have been deleted together with its ACL: that fails nothing.
    assert copied == []
    missed = f"needs DESCRIBE on topic {world.orders} of cluster {world.source_alias}"
    for consequence in ("No records are copied from", "No partition is verified of"):
        assert any(f"{consequence} {world.orders}" in text and missed in text for text in caplog.messages)


def test_lost_deletions_are_found_and_written_by_the_rights_that_are_listed_for_it(
    restricted_pair: RestrictedPair, tmp_path: Path
) -> None:
    # One flow for all rights, since the cleaner takes seconds.
    world = new_world(restricted_pair, tmp_path)
    lose_deletions(world)

    def attempt(needed: Iterable[RequiredAccess], partition: int) -> list[str]:
        with world.pair.granting(world.flow, grants_by_cluster(needed)):
            try:
                return delete_lost_keys(world, world.flow, partition)
            except MirrorError as error:
                return [str(error)]

    with world.pair.granting(world.flow, grants_by_cluster(_rights(AccessTask.VERIFY, world))):
        assert verified(world, world.flow, VerifyMode.STATE) == []
    needed = _rights(AccessTask.DELETE_KEYS, world)
    (writing,) = (each for each in needed if each.why == "write tombstones")
    for missing in needed:
        if missing is not writing:
            told = attempt((each for each in needed if each is not missing), 0)
            assert _names(told, missing), (missing, told)
    assert attempt(needed, 0) == []
    # It has begun by then, so that nothing can follow.
    assert _names(attempt((each for each in needed if each is not writing), 1), writing)


@pytest.mark.parametrize("hidden", [None, Resource.GROUP, Resource.TRANSACTIONAL_ID])
def test_a_cutover_sees_whom_it_would_split_by_the_rights_that_are_listed_for_it(
    restricted_pair: RestrictedPair, tmp_path: Path, hidden: Resource | None
) -> None:
    world = _world(restricted_pair, tmp_path, AccessTask.TRANSLATE_OFFSETS)
    source = restricted_pair.source.cluster
    other = f"{world.orders}-other"
    create_topic(source, other)
    for topic in (world.orders, other):
        transaction(source, topic, [b"one"], commit=True, name=f"shop-{world.orders}")
    needed = TASKS[AccessTask.CUTOVER].needs(AccessTask.CUTOVER, world)
    grants = grants_by_cluster(each for each in needed if each.grant.resource is not hidden)
    topic = ScopeTopic(world.orders, f"{world.source_alias}.{world.orders}", 2, 2)

    with world.pair.granting(world.flow, grants):
        found = read_belonging(world.flow, None, [topic], [".*"])

    groups = {world.group: frozenset({world.orders})}
    written = {f"shop-{world.orders}": frozenset({world.orders, other})}
    assert {name: each for name, each in found.read.items() if name == world.group} == (
        {} if hidden is Resource.GROUP else groups
    )
    assert {name: each for name, each in found.written.items() if name in written} == (
        {} if hidden is Resource.TRANSACTIONAL_ID else written
    )


def test_a_cutover_commits_offsets_by_its_rights_where_runs_commit_none(
    restricted_pair: RestrictedPair, tmp_path: Path
) -> None:
    world = new_world(restricted_pair, tmp_path, {"sync.group.offsets.enabled": "false"})
    commits = TASKS[AccessTask.SYNC_GROUP_OFFSETS]
    commits.prepare(world)
    needed = [*_rights(AccessTask.TRANSLATE_OFFSETS, world), *_rights(AccessTask.CUTOVER, world)]

    with world.pair.granting(world.flow, grants_by_cluster(needed)):
        told = commits.do(world, world.named, world.flow)

    assert told == []


@pytest.mark.parametrize("lacking", [None, "fill new", "fence", "delete the filler", "let topics"])
def test_targets_that_begin_at_the_sources_offset_need_rights_to_fill_them(
    restricted_pair: RestrictedPair, tmp_path: Path, lacking: str | None
) -> None:
    task = TASKS[AccessTask.SYNC_TOPICS]
    world = new_world(restricted_pair, tmp_path, {**task.settings, "mirror.offsets": "same"})
    task.prepare(world)
    source = restricted_pair.source.cluster
    delete_records(source, world.orders, before=2)
    set_config(source, world.orders, "cleanup.policy", "compact")
    needed = task.needs(AccessTask.SYNC_TOPICS, world)
    missing = next((each for each in needed if lacking and each.why.startswith(lacking)), None)
    assert (missing is None) is (lacking is None)
    # Who may write nowhere is refused a producer id before (KIP-679).
    needed += [each for each in _rights(AccessTask.COPY, world) if each.why == "store positions"]

    told = _try(world, AccessTask.SYNC_TOPICS, grants_by_cluster(each for each in needed if each is not missing))

    target = f"{world.source_alias}.{world.orders}"
    begins = watermarks(restricted_pair.target.cluster, target)[0] == 2
    assert begins is (missing is None), told
    assert missing is None or _names(told, missing), told


@pytest.mark.parametrize("allowed", [True, False])
def test_keeping_what_cannot_be_copied_needs_the_quarantine_topic(
    restricted_pair: RestrictedPair, tmp_path: Path, allowed: bool
) -> None:
    world = new_world(restricted_pair, tmp_path, {"mirror.poison.policy": "quarantine"})
    TASKS[AccessTask.COPY].prepare(world)
    set_config(restricted_pair.target.cluster, f"{world.source_alias}.{world.orders}", "max.message.bytes", "300")
    produce(restricted_pair.source.cluster, world.orders, records(1, size=2_000, start=20))
    needed = TASKS[AccessTask.COPY].needs(AccessTask.COPY, world)
    (keeping,) = [each for each in needed if each.grant.name.startswith("mm2-quarantine.")]

    told = _try(world, AccessTask.COPY, grants_by_cluster(each for each in needed if allowed or each != keeping))

    assert _names(told, keeping) is not allowed, told
    assert bool(told) is not allowed


def test_a_copy_without_transactional_ids_names_the_setting_that_copies_without_them(
    restricted_pair: RestrictedPair, tmp_path: Path
) -> None:
    # Given a target on which the user may do everything but use transactional ids, as some managed services
    task = TASKS[AccessTask.COPY]

    def told(settings: dict[str, str]) -> tuple[list[str], int]:
        world = new_world(restricted_pair, tmp_path, {**task.settings, **settings})
        task.prepare(world)
        rights = [
            each for each in task.needs(AccessTask.COPY, world) if each.grant.resource is not Resource.TRANSACTIONAL_ID
        ]
        said = _try(world, AccessTask.COPY, grants_by_cluster(rights))
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
        # The group has an offset in one of two partitions.
        assert told["reasons"] == {"refused": 1, "partition-uncommitted": 1}
        (row,) = (each for each in told["not_in_sync"] if each["reason"] == "refused")
        assert "READ on group" in row["what"]
    # When the right is there again, nothing is stored that stands in the way.
    with restricted_pair.granting(world.flow, grants_by_cluster(task.needs(AccessTask.SYNC_GROUP_OFFSETS, world))):
        assert say("apply")[0] == 0
        assert say("status")[1]["reasons"] == {"in-sync": 1, "partition-uncommitted": 1}


def _names(told: Iterable[str], missing: RequiredAccess, *, exactly: bool = False) -> bool:
    """Whether one of the texts says that the right is missing, or one that it brings with it."""
    return any(
        cluster == missing.cluster
        and missing.grant.covers(grant)
        and (not exactly or grant.operation is missing.grant.operation)
        for text in told
        for grant, cluster in _said(text)
    )


def _said(text: str) -> Iterator[tuple[Grant, str]]:
    for operation, kind, name, cluster, whole in _SAID.findall(text):
        if whole:
            yield Grant.on_cluster(Operation(operation)), whole
        else:
            resource = Resource(kind.replace(" ", "-"))
            yield Grant(resource, name, AclPattern.LITERAL, Operation(operation)), cluster
