"""Every task of a flow as the restricted user does it, and what must be there before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import KafkaException

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.cluster.topics.position_store import OffsetSyncWriter, PositionStore
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.topology import flow_topology, offset_syncs_topic
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.features.access.model import AccessTask, RequiredAccess
from mirror_lib.features.backfill.define import prepare_backfill, request_of
from mirror_lib.features.backfill.run import run_backfill
from mirror_lib.features.backfill.tables import Backfills
from mirror_lib.features.cutover.acl_fence import raise_fence
from mirror_lib.features.cutover.staged_acls import release_acls
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.forecast.plan import forecast_flow
from mirror_lib.features.metrics.observation import observe_flow
from mirror_lib.features.repair.key_deletions import delete_keys, plan_key_deletion
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.features.verify.run import VerifyOptions, verify_flow
from mirror_lib.features.verify.state.lost import find_lost_deletions
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.sync.acls.flow import apply_flow_acls
from mirror_lib.sync.admins import flow_admins
from mirror_lib.sync.configs.flow import apply_flow_configs
from mirror_lib.sync.groups.flow import apply_flow_groups
from mirror_lib.sync.heartbeats.flow import check_flow_heartbeats, emit_heartbeats
from mirror_lib.sync.heartbeats.rules import emitting_flows
from mirror_lib.sync.topics.flow import apply_flow_topics
from mirror_lib.sync.topics.internal import ensure_internal_topics
from mirror_lib.topology.access import Grant, Operation
from tests.support.brokers.compaction import create_compacted, forget, put
from tests.support.brokers.groups import commit_offset
from tests.support.flows import copy_here
from tests.support.kafka import admin, create_topic, delete_topic, produce, records, set_config
from tests.support.security.restricted import World, binding
from tests.support.waiting import wait_for


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a flow; `do` returns what it tells of trouble."""

    do: Callable[[World, MirrorConfig, FlowConfig], list[str]]
    #: Done before by somebody who may do everything.
    prepare: Callable[[World], None]
    #: Tasks of which this one is a part.
    within: tuple[AccessTask, ...] = ()
    #: Of the flow.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: What must be there in place of `prepare` where an operation is to be needed.
    prepare_for: Mapping[Operation, Callable[[World], None]] = field(default_factory=dict)

    def needs(self, task: AccessTask, world: World) -> list[RequiredAccess]:
        """All rights that the task takes."""
        return [each for each in world.required if each.task in (task, *self.within)]


_BACKFILLS = itertools.count(1)
_DECISIONS = itertools.count(1)


class _InterruptedError(RuntimeError):
    """A driver that dies behind the copy."""


def _dying(job: CopyJob) -> list[PartitionResult]:
    copy_here(job)
    raise _InterruptedError


# ------------------------------------------------------------ what tasks do


def _sync_topics(_world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    done = apply_flow_topics(flow, flow_topology(flow))
    told = [str(each) for each in done.plan.conflicts] + [str(each.error) for each in done.failures]
    return [*told, *(each.notice for each in done.internal if each.notice), *done.notices]


def _copy(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    report = replicate(flow, ledger=world.ledger, make_runner=lambda: copy_here, options=RunOptions())
    return [str(error) for error in report.errors]


def _emit(_world: World, config: MirrorConfig, flow: FlowConfig) -> list[str]:
    return [str(each.error) for each in emit_heartbeats(emitting_flows(config, flow.flow)) if each.error]


def _check(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    return [each.problem for each in check_flow_heartbeats(flow, ledger=world.ledger).upstreams if each.problem]


def _configs(_world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    return [str(error) for error in apply_flow_configs(flow, flow_topology(flow)).errors]


def _acls(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    done = apply_flow_acls(flow, flow_topology(flow), world.ledger, by="test")
    return [str(error) for _, error in done.failed] + ([done.plan.notice] if done.plan.notice else [])


def _translate(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    return _groups(world, flow, commit=False)


def _commit(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    return _groups(world, flow, commit=True)


def _groups(world: World, flow: FlowConfig, *, commit: bool) -> list[str]:
    plan = apply_flow_groups(flow, flow_topology(flow), commit=commit, ledger=world.ledger).plan
    told = [*plan.problems, *plan.notices]
    return told if plan.rows or told else ["no group was seen"]


def _observe(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    observed = observe_flow(flow, world.ledger)
    forecast = forecast_flow(flow, RunOptions(), world.ledger)
    # That nothing was copied lately is no matter of rights.
    told = [text for text in forecast.warnings() if "copied lately" not in text]
    return [*(row.detail for row in observed.partitions if row.detail), *told]


def _verify(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    return verified(world, flow, VerifyMode.FULL)


def verified(world: World, flow: FlowConfig, mode: VerifyMode) -> list[str]:
    """What a verification tells of what it could not compare."""
    options = VerifyOptions(mode=mode)
    report = verify_flow(flow, ledger=world.ledger, make_runner=lambda _: run_locally(1), options=options)
    told = [each.detail or each.verdict.value for each in report.verdicts if each.reason]
    return told if told or report.records else ["nothing was compared"]


def delete_lost_keys(world: World, flow: FlowConfig, partition: int) -> list[str]:
    """What `mirror gaps delete-keys` does with one partition; tells of trouble, and of nothing to do."""
    run_id = f"decision-{next(_DECISIONS)}"
    with (
        hold_lock(world.ledger, flow=world.name, run_id=run_id, lease_seconds=flow.run_lease_seconds) as lease,
        FlowClusters.connect(flow) as clusters,
    ):
        found, impossible = find_lost_deletions(flow, world.ledger, (world.orders,), (partition,), lambda _: None)
        deleted = 0
        for each in found:
            read_to, offsets = each.source_read_to, set(each.offsets.tolist())
            if offsets:
                planned = plan_key_deletion(flow, clusters, each.source, each.target, offsets, source_read_to=read_to)
                deleted += delete_keys(flow, clusters, world.ledger, lease, planned, run_id=run_id, by="test")
    told = [each.detail or each.verdict.value for each in impossible]
    return told if told or deleted else ["nothing was deleted"]


def _backfill(world: World, _config: MirrorConfig, flow: FlowConfig) -> list[str]:
    begun = [row.name for row in Backfills(world.ledger).of_flow(world.name)]
    name = begun[0] if begun else _defined(world, flow)
    report = run_backfill(flow, name, ledger=world.ledger, make_runner=lambda: copy_here, options=RunOptions())
    return [str(error) for error in report.errors]


def _defined(world: World, flow: FlowConfig) -> str:
    """A new backfill's name."""
    request = request_of(flow, [world.orders], "offset 0", "offset 5", into=None, into_suffix=None, into_same=True)
    with FlowClusters.connect(flow) as clusters:
        return prepare_backfill(flow, clusters, world.ledger, request, f"again-{next(_BACKFILLS)}")[0].backfill.name


def _cutover(world: World, config: MirrorConfig, flow: FlowConfig) -> list[str]:
    gate = raise_fence(flow, [world.orders], ["User:writer"], [], lambda _: None)
    told = [] if gate.passed else [gate.what]
    released = release_acls(flow, world.ledger, by="test")
    told += [str(error) for _, error in released.failed]
    return told + _commit(world, config, flow)


# ------------------------------------------------------------ what must be there before


def _written(world: World) -> None:
    """A source with something to copy."""
    source = world.pair.source.cluster
    create_topic(source, world.orders, partitions=2)
    produce(source, world.orders, [*records(20), *records(20, partition=1)])


def _narrow(world: World) -> None:
    """A target topic with too few partitions."""
    _written(world)
    create_topic(world.pair.target.cluster, f"{world.source_alias}.{world.orders}", partitions=1)


def _synced(world: World) -> None:
    _written(world)
    _emit(world, world.open, world.open_flow)
    assert _sync_topics(world, world.open, world.open_flow) == []


def _copied(world: World) -> None:
    _synced(world)
    told = _copy(world, world.open, world.open_flow)
    assert told == [], told


def _without_heartbeats(world: World) -> None:
    for cluster in (world.pair.source.cluster, world.pair.target.cluster):
        with suppress(KafkaException):
            delete_topic(cluster, "heartbeats")
        wait_for(partial(_lacks_heartbeats, cluster))


def _lacks_heartbeats(cluster: KafkaCluster) -> bool:
    return "heartbeats" not in admin(cluster).list_topics(timeout=10).topics


def _interrupted(world: World) -> None:
    """One partition that a run has left in the middle, and one that MirrorMaker 2 copied last."""
    _copied(world)
    source = world.pair.source.cluster
    produce(source, world.orders, records(5, start=20))
    with suppress(_InterruptedError):
        replicate(world.open_flow, ledger=world.ledger, make_runner=lambda: _dying, options=RunOptions())
    flow = world.open_flow
    produce(source, world.orders, records(10, partition=1, start=20))
    # What MirrorMaker 2 writes when it copies the first five of them.
    produce(
        world.pair.target.cluster, flow_topology(flow).remote_topic(world.orders), records(5, partition=1, start=20)
    )
    syncs = Connection.from_settings(flow.clients.offset_syncs_producer)
    with OffsetSyncWriter(syncs, offset_syncs_topic(flow)) as writer:
        writer.write([OffsetSync(world.orders, 1, 24, 24)])
    connection = Connection.from_settings(flow.clients.target_internal)
    with PositionStore(connection, flow.offset_storage_topic, flow.flow.source) as positions:
        positions.write([Position(world.orders, 1, 24)])


def _positioned(world: World) -> None:
    """A position topic that is there."""
    _written(world)
    with flow_admins(world.open_flow) as (source, target):
        ensure_internal_topics(world.open_flow, source, target)


def _backfill_interrupted(world: World) -> None:
    _copied(world)
    flow = world.open_flow
    name = _defined(world, flow)
    with suppress(_InterruptedError):
        run_backfill(flow, name, ledger=world.ledger, make_runner=lambda: _dying, options=RunOptions())


def _configured(world: World) -> None:
    _copied(world)
    set_config(world.pair.source.cluster, world.orders, "max.message.bytes", "1500000")


def _granted(world: World) -> None:
    _copied(world)
    for operation in (Operation.READ, Operation.WRITE):
        acl = binding(Grant.on_topic(operation, world.orders), "alice")
        world.pair.source.client.create_acls([acl])[acl].result(timeout=20)


def _staged(world: World) -> None:
    _granted(world)
    assert _acls(world, world.open, world.open_flow) == []


def _read(world: World) -> None:
    _copied(world)
    _read_half(world)


def _read_half(world: World) -> None:
    """A group that has read half of a topic."""
    commit_offset(world.pair.source.cluster, world.group, world.orders, 10)


def _staged_and_read(world: World) -> None:
    """What a cutover moves: grants to write, and a group."""
    _staged(world)
    _read_half(world)


def _translated(world: World) -> None:
    _read(world)
    assert _translate(world, world.open, world.open_flow) == []


def lose_deletions(world: World) -> None:
    """A compacted topic of which each target partition has a key that the source has not any more."""
    source = world.pair.source.cluster
    create_compacted(source, world.orders, partitions=2)
    for partition in range(2):
        put(source, world.orders, {"lost": "1", "kept": "1"}, partition=partition)
    _emit(world, world.open, world.open_flow)
    assert _sync_topics(world, world.open, world.open_flow) == []
    assert _copy(world, world.open, world.open_flow) == []
    for partition in range(2):
        put(source, world.orders, {"lost": None}, partition=partition)
    for partition in range(2):
        forget(source, world.orders, ["lost"], partition=partition)


def _behind(world: World) -> None:
    _copied(world)
    produce(world.pair.source.cluster, world.orders, records(5, start=20))


TASKS: Mapping[AccessTask, Task] = {
    AccessTask.SYNC_TOPICS: Task(
        _sync_topics,
        _written,
        prepare_for={Operation.ALTER: _narrow, Operation.DESCRIBE_CONFIGS: _positioned, Operation.READ: _positioned},
    ),
    AccessTask.COPY: Task(_copy, _synced),
    AccessTask.TAKE_OVER: Task(_copy, _interrupted, (AccessTask.COPY,)),
    AccessTask.EMIT_HEARTBEATS: Task(_emit, _without_heartbeats),
    AccessTask.CHECK_HEARTBEATS: Task(_check, _copied, settings={"heartbeats.replication.enabled": "true"}),
    AccessTask.SYNC_TOPIC_CONFIGS: Task(_configs, _configured),
    AccessTask.SYNC_TOPIC_ACLS: Task(_acls, _granted),
    AccessTask.TRANSLATE_OFFSETS: Task(_translate, _read, prepare_for={Operation.READ: _translated}),
    AccessTask.SYNC_GROUP_OFFSETS: Task(_commit, _read, (AccessTask.TRANSLATE_OFFSETS,)),
    AccessTask.OBSERVE: Task(_observe, _behind),
    AccessTask.VERIFY: Task(_verify, _copied),
    AccessTask.BACKFILL: Task(_backfill, _copied, prepare_for={Operation.READ: _backfill_interrupted}),
    AccessTask.CUTOVER: Task(_cutover, _staged_and_read, (AccessTask.TRANSLATE_OFFSETS,)),
}
