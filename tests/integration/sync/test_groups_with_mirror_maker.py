"""MirrorMaker 2 goes on with our checkpoints, and we go on with its: for the same offset syncs both agree."""

from __future__ import annotations

from dataclasses import replace

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.admin.groups import CommittedOffset, GroupAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.checkpoints import read_offset_syncs
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.config.topology import flow_topology
from mirror_lib.offsets.sync_store import OffsetSyncStore
from mirror_lib.offsets.syncs import SyncPoint
from mirror_lib.sync.groups.flow import apply_flow_groups, plan_flow_groups
from mirror_lib.sync.groups.model import GroupPlan
from mirror_lib.sync.topics.internal import checkpoints_topic, offset_syncs_topic
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.groups import committed_offsets
from tests.support.kafka import admin, consume, records
from tests.support.mirror_maker import SharedFlow, shared_flow, wait_until
from tests.support.mirrored_topic import MirroredTopic
from tools.testbed.mm2 import MirrorMaker


def commit(flow: SharedFlow, topic: str, offsets: dict[str, int]) -> None:
    place = TopicPartition(topic, 0)
    with GroupAdmin(Connection.from_settings(flow.ours.config.clients.source_admin)) as groups:
        done = groups.commit({group: {place: CommittedOffset(offset, "note")} for group, offset in offsets.items()})
    assert {error for outcome in done.values() for error in outcome.values()} == {None}


def checkpoints(flow: SharedFlow) -> list[Checkpoint]:
    topic = checkpoints_topic(flow.ours.config).name
    return [Checkpoint.decode(each.key, each.value) for each in consume(flow.pair.target, topic)]


def last_checkpoints(flow: SharedFlow) -> dict[str, Checkpoint]:
    return {each.group: each for each in checkpoints(flow)}


def our_plan(flow: SharedFlow) -> GroupPlan:
    return plan_flow_groups(flow.ours.config, flow_topology(flow.ours.config)).plan


def translated(flow: SharedFlow, topic: str, offsets: dict[str, int]) -> dict[str, int | None]:
    """By our store, whatever checkpoints there are."""
    connection = Connection.from_settings(flow.ours.config.clients.offset_syncs_consumer)
    store = OffsetSyncStore()
    for sync in read_offset_syncs(connection, offset_syncs_topic(flow.ours.config).name).entries:
        store.add(TopicPartition(sync.topic, sync.partition), SyncPoint(sync.upstream_offset, sync.downstream_offset))
    store.mark_loaded()
    return {group: store.translate(TopicPartition(topic, 0), offset) for group, offset in offsets.items()}


def test_checkpoints_of_both_agree_whoever_goes_on(mirrored: MirroredTopic) -> None:
    mirrored.create()
    settings = {
        "groups": f"{mirrored.name}.*",
        "heartbeats.replication.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
    }
    flow = shared_flow(mirrored.folder, mirrored.pair, topics=mirrored.name, settings=settings)
    remote = f"{flow.source_alias}.{mirrored.name}"
    begin, between, end, late, exact, back = (
        f"{mirrored.name}-{name}" for name in ("begin", "between", "end", "late", "exact", "back")
    )
    ours = {begin: 0, between: 777, end: 1_000}
    by_map = {exact: 777, back: 888}

    # Our flow copies and translates.
    mirrored.produce(records(1_000))
    assert flow.ours.run().errors == ()
    commit(flow, mirrored.name, ours)
    apply_flow_groups(flow.ours.config, flow_topology(flow.ours.config))
    written = checkpoints(flow)
    assert {each.group: each.upstream_offset for each in written} == ours
    # The exact map knows more than the syncs, by which MirrorMaker translates.
    commit(flow, mirrored.name, by_map)
    for _ in range(2):
        apply_flow_groups(flow.ours.config, flow_topology(flow.ours.config), ledger=flow.ours.ledger)
    last = {each.group: each.downstream_offset for each in checkpoints(flow)}
    assert last == {**ours, **by_map}
    assert all((offset or 0) < last[group] for group, offset in translated(flow, mirrored.name, by_map).items())
    written = checkpoints(flow)

    # MirrorMaker starts: of our groups it finds nothing to say, and of a new one the same as we would say.
    admin(flow.pair.target).delete_consumer_groups([exact])[exact].result(30)
    commit(flow, mirrored.name, {late: 555})
    (expected,) = our_plan(flow).checkpoints
    with MirrorMaker(mirrored.folder / "mm2") as mirror_maker:
        mirror_maker.start(flow.properties).wait_started()
        wait_until(lambda: late in last_checkpoints(flow), mirror_maker, "a checkpoint")
        assert checkpoints(flow) == [*written, expected]
        # It commits at our checkpoint.
        wait_until(lambda: bool(committed_offsets(flow.pair.target, exact)), mirror_maker, "the commit")
        assert committed_offsets(flow.pair.target, exact) == {(remote, 0): 777}

        # It goes on: more records, groups that move, new offset syncs.
        mirrored.produce(records(1_000))
        theirs = {between: 1_234, end: 2_000, late: 1_000, exact: 2_000, back: 500}
        commit(flow, mirrored.name, theirs)
        end_reached = Checkpoint(end, remote, 0, 2_000, 2_000, "note")
        wait_until(lambda: last_checkpoints(flow)[end] == end_reached, mirror_maker, "the checkpoint at the end")
        at_the_end = {(remote, 0): 2_000}
        wait_until(lambda: committed_offsets(flow.pair.target, end) == at_the_end, mirror_maker, "the commit")
        wait_until(lambda: our_plan(flow).changes == 0, mirror_maker, "the last checkpoint")

    # No checkpoint of ours was in its way.
    # We go on with what it wrote: nothing to add, and where translations are exact they are the same.
    after = last_checkpoints(flow)
    offsets = {**ours, **by_map, **theirs}
    assert {group: after[group].upstream_offset for group in theirs} == theirs
    now = translated(flow, mirrored.name, offsets)
    assert (now[begin], now[end]) == (after[begin].downstream_offset, after[end].downstream_offset) == (0, 2_000)
    assert after[exact].downstream_offset == 2_000
    for group in (between, late, back):
        # Between syncs the translation gets coarser while further syncs arrive, and a checkpoint is never taken back.
        assert (now[group] or 0) <= after[group].downstream_offset <= theirs[group]
    plan = our_plan(flow)
    assert plan.changes == 0
    assert {row.group: row.reason for row in plan.rows if row.group in (begin, end)} == {begin: None, end: None}
    # Where MirrorMaker has copied, the map and its syncs give a lower bound, until the map has its records too.
    exactly, bound = {late: 1_000, back: 500}, max(1_000, after[between].downstream_offset)
    for offset, reason, rebuild in ((bound, "between-syncs", True), (1_234, None, False)):
        done = apply_flow_groups(flow.ours.config, flow_topology(flow.ours.config), ledger=flow.ours.ledger).plan
        assert last_checkpoints(flow) == {**after, **at_the_offsets(after, {**exactly, between: offset})}
        # MirrorMaker may have set back the group on the target, or not: it clears what it knows of idle groups.
        reasons = {row.group: row.reason for row in done.rows if row.group != back}
        assert reasons == {**dict.fromkeys(offsets.keys() - {back}), between: reason}
        assert [row.duplicates for row in done.rows if row.group == between] == [None if rebuild else 0]
        options = ["--config", str(flow.path), "--flow", flow.name]
        if rebuild:
            assert CliRunner().invoke(app, ["map", "rebuild", *options, "--apply"]).exit_code == 0
    assert committed_offsets(flow.pair.target, between) == {(remote, 0): 1_234}


def at_the_offsets(before: dict[str, Checkpoint], offsets: dict[str, int]) -> dict[str, Checkpoint]:
    """Checkpoints at offsets that are the same on both sides."""
    return {group: replace(before[group], downstream_offset=offset) for group, offset in offsets.items()}
