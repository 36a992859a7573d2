"""Take-over: MirrorMaker 2 has copied and ends in mid-stream; our flow goes on with the same properties file."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.admin.groups import CommittedOffset, GroupAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.sync.heartbeats.flow import check_flow_heartbeats
from mirror_lib.sync.heartbeats.rules import HeartbeatState
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.groups import committed_offsets
from tests.support.clusters import KafkaPair
from tests.support.kafka import consume, create_topic, produce, records, watermarks
from tests.support.mirror_maker import SharedFlow, contents, shared_flow, wait_until
from tools.testbed.mm2 import MirrorMaker

PARTITIONS = 2


@contextmanager
def written_to(cluster: KafkaCluster, topic: str, *, start: int) -> Iterator[None]:
    """Records keep coming, a few hundred a second, until the block ends."""
    stop = threading.Event()

    def write() -> None:
        number = start
        while not stop.wait(0.1):
            for partition in range(PARTITIONS):
                produce(cluster, topic, records(20, partition=partition, start=number))
            number += 20

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def write_with_holes(cluster: KafkaCluster, topic: str) -> None:
    """Transactions, committed and aborted: their markers and aborted records take offsets that no copy has."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic, "log_level": 3})
    producer.init_transactions()
    for number in range(12):
        producer.begin_transaction()
        for record in records(15, start=number * 15):
            producer.produce(topic, record.value, record.key, partition=0, timestamp=record.timestamp_ms or 0)
        producer.flush()
        if number % 3 == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def positions(shared: SharedFlow) -> dict[TopicPartition, Position]:
    """The positions on the target as our flow reads them."""
    flow = shared.ours.config
    connection = Connection.from_settings(flow.clients.target_internal)
    with PositionStore(connection, flow.offset_storage_topic, flow.source_alias) as store:
        return {source: stored.position for source, stored in store.read_all().positions.items()}


@pytest.mark.timeout(600)
def test_our_flow_goes_on_where_a_stopped_mirror_maker_ended(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    # Given MirrorMaker copying a topic that is being written to, and one whose offsets have holes,
    holes = f"{topic_name}-holes"
    settings = {"groups": topic_name, "sync.group.offsets.enabled": "true"}
    shared = shared_flow(
        tmp_path, interop_pair, topics=f"{topic_name}.*", isolation="read_committed", settings=settings
    )
    remote, remote_holes = (f"{shared.source_alias}.{name}" for name in (topic_name, holes))
    create_topic(interop_pair.source, topic_name, partitions=PARTITIONS)
    create_topic(interop_pair.source, holes)
    produce(interop_pair.source, topic_name, records(500))
    write_with_holes(interop_pair.source, holes)

    with written_to(interop_pair.source, topic_name, start=100_000):
        # when it is stopped in the middle,
        with MirrorMaker(tmp_path / "mm2") as mirror_maker:
            mirror_maker.start(shared.properties).wait_started()
            wait_until(lambda: copied(shared, remote) > 700, mirror_maker, "a good part of the copy")
            wait_until(lambda: copied(shared, remote_holes) >= 8 * 15, mirror_maker, "the copy of transactions")
        by_mirror_maker = copied(shared, remote)
        # and our flow runs with the same file while records keep coming, and once more at their end,
        first = shared.ours.run()
    second = shared.ours.run()

    # then it has taken over every position,
    assert (first.errors, second.errors) == ((), ())
    assert by_mirror_maker < copied(shared, remote)
    taken = positions(shared)
    for partition in range(PARTITIONS):
        position = taken[TopicPartition(topic_name, partition)]
        assert position.offset == watermarks(interop_pair.source, topic_name, partition)[1] - 1
        # Taking over fences the partition, which takes an offset of the target.
        assert position.target_offset == watermarks(interop_pair.target, remote, partition)[1]
        assert position.state is PositionState.CLOSED
    # and no record is missing, and none is there twice.
    assert contents(interop_pair.target, remote) == contents(interop_pair.source, topic_name)
    assert contents(interop_pair.target, remote_holes) == contents(interop_pair.source, holes)
    heartbeats = contents(interop_pair.source, "heartbeats")
    assert contents(interop_pair.target, f"{shared.source_alias}.heartbeats") == heartbeats
    # Heartbeats that MirrorMaker wrote say that the way works.
    seen = check_flow_heartbeats(shared.ours.config, ledger=shared.ours.ledger, max_age_seconds=600).source
    assert (seen.hops, seen.state) == (1, HeartbeatState.FRESH)
    assert f"{shared.target_alias}->{shared.source_alias}" in seen.emitters
    # The map begins behind what MirrorMaker copied. Rebuilt from both logs, it has all of it, and groups are exact.
    behind = {TopicPartition(topic_name, 0): 333, TopicPartition(topic_name, 1): 444, TopicPartition(holes, 0): 77}
    with GroupAdmin(Connection.from_settings(shared.ours.config.clients.source_admin)) as groups:
        groups.commit({topic_name: {place: CommittedOffset(offset) for place, offset in behind.items()}})
    options = ["--config", str(shared.path), "--flow", shared.name]
    outputs = []
    for command in (["groups", "apply"], ["groups", "status"], ["map", "rebuild", "--apply"], ["groups", "apply"]):
        done = CliRunner().invoke(app, [*command, *options])
        assert done.exit_code == (1 if "status" in command else 0), done.output
        outputs.append(done.stdout)
    assert outputs[1].count("between-syncs") == len(behind) + 1, outputs[1]
    expected = {}
    for place, offset in behind.items():
        here, there = (
            [record.offset or 0 for record in consume(cluster, topic, partitions=[place.partition])]
            for cluster, topic in (
                (interop_pair.source, place.topic),
                (interop_pair.target, f"{shared.source_alias}.{place.topic}"),
            )
        )
        expected[f"{shared.source_alias}.{place.topic}", place.partition] = there[bisect_left(here, offset)]
    assert committed_offsets(interop_pair.target, topic_name) == expected


@pytest.mark.timeout(600)
def test_our_flow_goes_on_where_a_killed_mirror_maker_left_more_than_it_had_stored(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    # Given MirrorMaker that stores its positions rarely, and by aliases that are not the clusters' names,
    shared = shared_flow(
        tmp_path,
        interop_pair,
        topics=topic_name,
        flush_interval_ms=5_000,
        # Heartbeats might be copied and not stored: then the flow asks about their target.
        settings={
            "source.cluster.alias": "prod",
            "target.cluster.alias": "dr",
            "heartbeats.replication.enabled": "false",
        },
    )
    remote = f"prod.{topic_name}"
    create_topic(interop_pair.source, topic_name, partitions=PARTITIONS)
    produce(interop_pair.source, topic_name, records(500))

    # when it is killed while it copies, after it has stored some and copied more,
    with written_to(interop_pair.source, topic_name, start=100_000):
        with MirrorMaker(tmp_path / "mm2") as mirror_maker:
            mirror_maker.start(shared.properties).wait_started()
            wait_until(lambda: has_stored(shared, topic_name), mirror_maker, "the first position")
            wait_until(lambda: is_ahead(shared, topic_name, remote), mirror_maker, "a copy beyond the position")
            mirror_maker.kill()
        # and our flow takes over,
        first = shared.ours.run()
    second = shared.ours.run()

    # then what had been copied without being stored is not copied again.
    assert (first.errors, second.errors) == ((), ())
    assert contents(interop_pair.target, remote) == contents(interop_pair.source, topic_name)


def copied(shared: SharedFlow, remote: str) -> int:
    """Records of a topic on the target."""
    return len(consume(shared.pair.target, remote)) if remote in shared.topics_on_target() else 0


def has_stored(shared: SharedFlow, topic: str) -> bool:
    """Whether MirrorMaker has stored a position of every partition."""
    return {TopicPartition(topic, partition) for partition in range(PARTITIONS)} <= set(positions(shared))


def is_ahead(shared: SharedFlow, topic: str, remote: str) -> bool:
    """Whether every partition on the target reaches beyond its position."""
    stored = positions(shared)
    return all(
        watermarks(shared.pair.target, remote, partition)[1] > stored[TopicPartition(topic, partition)].offset + 20
        for partition in range(PARTITIONS)
    )


@pytest.mark.timeout(600)
def test_our_flow_goes_on_under_the_names_that_mirror_maker_gave_without_alias_and_separator(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    """By other names, or without the positions that are stored by the alias, everything would be copied again."""
    naming = {"source.cluster.alias": "", "target.cluster.alias": "", "replication.policy.separator": ""}
    shared = shared_flow(tmp_path, interop_pair, topics=topic_name, settings=naming)
    create_topic(interop_pair.source, topic_name)
    produce(interop_pair.source, topic_name, records(50))
    with MirrorMaker(tmp_path / "mm2") as mirror_maker:
        mirror_maker.start(shared.properties).wait_started()
        wait_until(lambda: copied(shared, topic_name) == 50, mirror_maker, "the copy")
        assert mirror_maker.cpu_seconds > 0
    assert mirror_maker.process is None
    produce(interop_pair.source, topic_name, records(30, start=50))

    done = shared.ours.run()

    assert done.errors == ()
    assert contents(interop_pair.target, topic_name) == contents(interop_pair.source, topic_name)
    assert len(contents(interop_pair.target, topic_name)) == 80
