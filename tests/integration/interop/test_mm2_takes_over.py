"""Hand-back: our flow has copied, and MirrorMaker 2 goes on with the same properties file as if it had done it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from mirror_lib.cluster.admin.model import TopicSpec
from mirror_lib.cluster.topics.mm2_formats import Checkpoint, Heartbeat, OffsetSync
from mirror_lib.cluster.topics.position_format import Position, PositionKeys, decode_value, encode_value, partition_for
from mirror_lib.config.model import OffsetSyncsLocation
from mirror_lib.config.topology import replication_policy
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.sync.heartbeats.flow import emit_heartbeats
from mirror_lib.sync.heartbeats.rules import emitting_flows, heartbeats_topic
from mirror_lib.sync.topics.internal import offset_syncs_topic, position_topic
from mirror_lib.topology.names import TopicPartition as Source
from tests.support.brokers.groups import commit_offset
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, consume, create_topic, own_configs, partition_count, produce, records
from tests.support.mirror_maker import SharedFlow, contents, shared_flow, wait_until
from tools.testbed.mm2 import MirrorMaker

PARTITIONS = 3
GROUP = "billing"
#: Within what we have copied; MirrorMaker can translate it only by our offset-syncs.
GROUP_OFFSET = 250

#: How internal topics may be named and placed.
NAMINGS = {
    "dots, offset-syncs on the source": {},
    "own separator everywhere, offset-syncs on the target": {
        "offset-syncs.topic.location": "target",
        "replication.policy.separator": "_",
    },
}


def write(shared: SharedFlow, topic: str, counts: tuple[int, ...], *, start: int) -> None:
    for partition, count in enumerate(counts):
        produce(shared.pair.source, topic, records(count, partition=partition, start=start))


@dataclass(frozen=True)
class InternalRecords:
    """What stands in a flow's internal topics."""

    positions: list[Record]
    syncs: list[Record]
    #: Those that watch this flow, on its source.
    heartbeats: list[Record]


def internal_topics(shared: SharedFlow) -> list[tuple[TopicSpec, KafkaCluster]]:
    """Positions, offset-syncs and heartbeats, as our code makes them, and the clusters that they are on."""
    flow, pair = shared.ours.config, shared.pair
    on_source = flow.offset_syncs_topic_location is OffsetSyncsLocation.SOURCE
    return [
        (position_topic(flow), pair.target),
        (offset_syncs_topic(flow), pair.source if on_source else pair.target),
        (heartbeats_topic(flow, replication_policy(flow)), pair.source),
    ]


def internal_records(shared: SharedFlow) -> InternalRecords:
    positions, syncs, heartbeats = (consume(cluster, spec.name) for spec, cluster in internal_topics(shared))
    return InternalRecords(positions, syncs, watching(shared, heartbeats))


def watching(shared: SharedFlow, heartbeats: list[Record]) -> list[Record]:
    """Those that watch this flow; other tests have left theirs in the same topic."""
    return [record for record in heartbeats if record.key is not None and shared.target_alias.encode() in record.key]


def new_records(ours: list[Record], both: list[Record]) -> list[Record]:
    """What MirrorMaker added."""
    return [record for record in both if record not in ours]


def assert_same_positions(ours: list[Record], both: list[Record], shared: SharedFlow, topic: str) -> None:
    keys = PositionKeys(shared.source_alias)
    theirs = [record for record in new_records(ours, both) if keys.decode(record.key) is not None]
    # MirrorMaker has written on about every partition that had something new, and about no other.
    assert {keys.decode(record.key) for record in theirs} == {
        Source(topic, 0),
        Source(topic, 2),
        Source("heartbeats", 0),
    }
    for record in theirs:
        source = keys.decode(record.key)
        assert source is not None
        assert keys.encode(source) == record.key
        assert partition_for(keys.encode(source), 25) == record.partition
        position = decode_value(source, record.value)
        assert encode_value(Position(source.topic, source.partition, position.offset)) == record.value
    # The last one of each is about the last record.
    newest = {keys.decode(record.key): record.value for record in theirs}
    assert newest[Source(topic, 0)] == b'{"offset":1199}'
    assert newest[Source(topic, 2)] == b'{"offset":149}'


def assert_same_syncs(ours: list[Record], both: list[Record]) -> None:
    theirs = new_records(ours, both)
    assert theirs != []
    for record in theirs:
        sync = OffsetSync.decode(record.key, record.value)
        assert (record.partition, record.headers, record.key, record.value) == (0, (), sync.key(), sync.value())
    # Its first sync of the partition that both copied has the key of ours.
    assert {record.key for record in ours} & {record.key for record in theirs} != set()


def assert_same_heartbeats(ours: list[Record], both: list[Record], shared: SharedFlow) -> None:
    theirs = new_records(ours, both)
    assert len(ours) == 1
    assert len(theirs) > 2
    assert {record.key for record in theirs} == {ours[0].key}
    for record in theirs:
        heartbeat = Heartbeat.decode(record.key, record.value)
        assert (heartbeat.source, heartbeat.target) == (shared.target_alias, shared.source_alias)
        assert (record.value, record.timestamp_ms) == (heartbeat.value(), heartbeat.timestamp)
        assert (record.partition, record.headers) == (0, ())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("naming", NAMINGS.values(), ids=NAMINGS.keys())
def test_mirror_maker_goes_on_where_our_flow_closed(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path, naming: dict[str, str]
) -> None:
    # Given a flow that we have copied and closed,
    shared = shared_flow(tmp_path, interop_pair, topics=topic_name, settings=naming)
    flow, policy = shared.ours.config, replication_policy(shared.ours.config)
    remote = policy.format_remote_topic(shared.source_alias, topic_name)
    create_topic(interop_pair.source, topic_name, partitions=PARTITIONS)
    write(shared, topic_name, (1_000, 300, 0), start=0)
    assert [each.error for each in emit_heartbeats(emitting_flows(shared.config, flow.flow))] == [None, None]
    assert shared.ours.run().errors == ()
    ours = internal_records(shared)
    before = shared.topics_on_target()
    # a group that is somewhere within it, and records that came since,
    commit_offset(interop_pair.source, GROUP, topic_name, GROUP_OFFSET)
    write(shared, topic_name, (200, 0, 150), start=10_000)

    # when MirrorMaker is started with the same file,
    with MirrorMaker(tmp_path / "mm2") as mirror_maker:
        mirror_maker.start(shared.properties).wait_started()
        wait_until(
            lambda: len(consume(interop_pair.target, remote)) >= 1_650, mirror_maker, "the copy of what came since"
        )
        checkpoints_topic = policy.checkpoints_topic(shared.source_alias)
        wait_until(lambda: checkpoints_topic in shared.topics_on_target(), mirror_maker, "the checkpoints topic")
        wait_until(lambda: bool(consume(interop_pair.target, checkpoints_topic)), mirror_maker, "a checkpoint")
        heartbeats = policy.format_remote_topic(shared.source_alias, "heartbeats")
        wait_until(
            lambda: len(watching(shared, consume(interop_pair.target, heartbeats))) > 3, mirror_maker, "heartbeats"
        )

    # then nothing is missing and nothing is there twice,
    assert contents(interop_pair.target, remote) == contents(interop_pair.source, topic_name)
    carried = contents(interop_pair.target, heartbeats)
    assert carried == contents(interop_pair.source, "heartbeats")[: len(carried)]
    # our offset-syncs let it translate a group's offset, never beyond the group's record,
    written = consume(interop_pair.target, checkpoints_topic)
    for record in written:
        checkpoint = Checkpoint.decode(record.key, record.value)
        assert (checkpoint.group, checkpoint.topic, checkpoint.upstream_offset) == (GROUP, remote, GROUP_OFFSET)
        assert 0 < checkpoint.downstream_offset <= GROUP_OFFSET
        assert (record.partition, record.headers) == (0, ())
        assert (record.key, record.value) == (checkpoint.key(), checkpoint.value())
    # it has used our internal topics and made none beside them but those that we do not need,
    made = {name for name in shared.topics_on_target() - before if not name.startswith("__")}
    connects = {f"mm2-{kind}.{shared.source_alias}.internal" for kind in ("configs", "status")}
    assert made == {*connects, checkpoints_topic}
    for spec, cluster in internal_topics(shared):
        found = TopicSpec(spec.name, partition_count(cluster, spec.name), 1, own_configs(cluster, spec.name))
        assert found == spec
    # and what it wrote there has, for the same facts, the bytes and places of what we wrote.
    both = internal_records(shared)
    assert_same_positions(ours.positions, both.positions, shared, topic_name)
    assert_same_syncs(ours.syncs, both.syncs)
    assert_same_heartbeats(ours.heartbeats, both.heartbeats, shared)

    # When our flow takes it back, then it goes on as well.
    write(shared, topic_name, (30, 20, 10), start=20_000)
    assert shared.ours.run().errors == ()
    assert contents(interop_pair.target, remote) == contents(interop_pair.source, topic_name)
    assert contents(interop_pair.target, heartbeats) == contents(interop_pair.source, "heartbeats")
