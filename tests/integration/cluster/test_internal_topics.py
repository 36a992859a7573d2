"""Position records and offset syncs on a real broker."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import OffsetSyncWriter, PositionSnapshot, PositionStore, StoredPosition
from mirror_lib.cluster.topics.records import NewRecord, RecordPlace
from mirror_lib.cluster.topics.writer import SmallTopicWriter
from mirror_lib.errors import BrokerUnreachableError, ConfigurationError, TopicMissingError, TransientError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.kafka import admin, consume, create_topic, leaders

KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]'
#: Where Java's partitioner puts KEY among 25 partitions.
KEY_PARTITION = 16
FOO = TopicPartition("foo", 0)


def connection_to(bootstrap_servers: str) -> Connection:
    return Connection("B", tuple(bootstrap_servers.split(",")))


@pytest.fixture
def target(kafka_pair: KafkaPair) -> KafkaCluster:
    return kafka_pair.target


@pytest.fixture
def position_topic(target: KafkaCluster, topic_name: str) -> str:
    create_topic(target, topic_name, partitions=25, configs={"cleanup.policy": "compact"})
    return topic_name


@pytest.fixture
def store(target: KafkaCluster, position_topic: str) -> Iterator[PositionStore]:
    with PositionStore(connection_to(target.bootstrap_servers), position_topic, "A") as opened:
        yield opened


def positions_of(snapshot: PositionSnapshot) -> dict[TopicPartition, Position]:
    return {source: stored.position for source, stored in snapshot.positions.items()}


def test_an_empty_topic_holds_no_positions(store: PositionStore) -> None:
    snapshot = store.read_all()
    assert positions_of(snapshot) == {}
    assert snapshot.next_offsets == dict.fromkeys(range(25), 0)


def test_what_was_written_is_read_with_its_place(store: PositionStore) -> None:
    opened = Position("foo", 0, -1, 0, PositionState.OPEN, 4001, 3, "run-1", "topic-id")
    places = store.write([opened, Position("bar", 7, 41)])
    assert places[0] == RecordPlace(KEY_PARTITION, 0)
    snapshot = store.read_all()
    assert snapshot.positions[FOO] == StoredPosition(opened, RecordPlace(KEY_PARTITION, 0))
    assert snapshot.positions[TopicPartition("bar", 7)] == StoredPosition(Position("bar", 7, 41), places[1])


def test_they_can_be_read_beside_something_else(store: PositionStore) -> None:
    store.write([Position("foo", 0, 41)])

    with store.reading_all() as snapshot:
        pass

    assert positions_of(snapshot()) == {FOO: Position("foo", 0, 41)}


def test_when_what_was_done_beside_it_fails_then_nobody_waits_for_a_cluster_that_is_away() -> None:
    hours = 7200.0
    with (
        PositionStore(connection_to("127.0.0.1:9"), "positions", "A", timeout=hours) as away,
        pytest.raises(ZeroDivisionError),
        away.reading_all(),
    ):
        raise ZeroDivisionError


def test_a_run_that_wakes_up_late_does_not_undo_what_its_successor_stored(store: PositionStore) -> None:
    successor = Position("foo", 0, 70, 70, PositionState.CLOSED, run_id="second", claim=2)
    store.write([Position("foo", 0, 40, 40, PositionState.OPEN, run_id="first", claim=1), successor])
    store.write([Position("foo", 0, 50, 50, PositionState.OPEN, run_id="first", claim=1)])

    snapshot = store.read_all()

    assert positions_of(snapshot) == {FOO: successor}
    assert snapshot.claims == {FOO: 2}
    assert snapshot.buried == {FOO}
    # Written again, it survives compaction, which deletes all but the newest record.
    store.write([successor])
    again = store.read_all()
    assert (positions_of(again), again.buried) == ({FOO: successor}, frozenset())


def test_reading_since_a_snapshot_gives_all_later_records_in_order(store: PositionStore) -> None:
    store.write([Position("foo", 0, 1), Position("bar", 0, 1)])
    before = store.read_all()
    later = [Position("foo", 0, 1, run_id="other"), Position("foo", 0, 1, run_id="ours")]
    places = store.write(later)
    assert store.read_since(before) == tuple(map(StoredPosition, later, places))
    assert store.read_since(store.read_all()) == ()


def test_a_snapshot_from_before_the_topic_existed_sees_everything_since(store: PositionStore) -> None:
    store.write([Position("foo", 0, 5)])
    assert [stored.position.offset for stored in store.read_since(PositionSnapshot())] == [5]


def test_five_thousand_positions_are_read(store: PositionStore) -> None:
    written = [Position("t", p, 10**9, 10**9, PositionState.CLOSED, 4001, 3, "run-1", "id") for p in range(5_000)]
    assert len(store.write(written)) == 5_000
    assert len(store.read_all().positions) == 5_000


def test_aborted_records_are_not_positions_and_the_end_is_found_behind_them(
    store: PositionStore, target: KafkaCluster, position_topic: str
) -> None:
    producer = transactional(target, position_topic)
    producer.begin_transaction()
    producer.produce(position_topic, b'{"offset":77}', KEY, partition=KEY_PARTITION)
    producer.flush()
    producer.abort_transaction()
    assert positions_of(store.read_all()) == {}
    store.write([Position("foo", 0, 5)])
    assert positions_of(store.read_all()) == {FOO: Position("foo", 0, 5)}


def test_an_open_transaction_that_hides_records_is_an_error_and_not_a_short_read(
    target: KafkaCluster, position_topic: str
) -> None:
    producer = transactional(target, position_topic)
    producer.begin_transaction()
    producer.produce(position_topic, b'{"offset":77}', KEY, partition=KEY_PARTITION)
    producer.flush()
    with PositionStore(connection_to(target.bootstrap_servers), position_topic, "A", timeout=2) as store:
        store.write([Position("foo", 0, 5)])
        with pytest.raises(TransientError, match=f"partitions {KEY_PARTITION}"):
            store.read_all()
        producer.commit_transaction()
        assert positions_of(store.read_all()) == {FOO: Position("foo", 0, 5)}


def transactional(cluster: KafkaCluster, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name})
    producer.init_transactions()
    return producer


def test_a_missing_topic_reads_as_empty_is_not_created_and_cannot_be_written(
    target: KafkaCluster, topic_name: str
) -> None:
    with PositionStore(connection_to(target.bootstrap_servers), topic_name, "A") as store:
        assert store.read_all() == PositionSnapshot()
        assert store.write([]) == ()
        with pytest.raises(TopicMissingError) as caught:
            store.write([Position("foo", 0, 1)])
    assert caught.value.where.topic == topic_name
    assert topic_name not in admin(target).list_topics(timeout=10).topics


def test_an_unreachable_cluster_is_an_error() -> None:
    with PositionStore(connection_to("127.0.0.1:1"), "positions", "A", timeout=1.5) as store:
        with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1"):
            store.read_all()
        with pytest.raises(BrokerUnreachableError):
            store.write([Position("foo", 0, 1)])


def test_offset_syncs_go_to_partition_0_in_their_order(target: KafkaCluster, topic_name: str) -> None:
    create_topic(target, topic_name, configs={"cleanup.policy": "compact"})
    syncs = [OffsetSync("orders", 3, offset, offset * 2) for offset in range(100)]
    with OffsetSyncWriter(connection_to(target.bootstrap_servers), topic_name) as writer:
        assert writer.write(syncs) == tuple(RecordPlace(0, offset) for offset in range(100))
        assert writer.write([]) == ()
    found = consume(target, topic_name)
    assert [OffsetSync.decode(record.key, record.value) for record in found] == syncs
    assert {record.headers for record in found} == {()}


def test_a_client_that_cannot_be_set_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "librdkafka", lambda self: {"security.protocol": "NONE"})
    writer = OffsetSyncWriter(connection_to("127.0.0.1:1"), "syncs")
    with pytest.raises(ConfigurationError, match="the client for syncs cannot be created"):
        writer.write([OffsetSync("orders", 0, 1, 1)])


def test_a_partition_without_a_leader_is_named_to_readers_and_writers(
    three_brokers: KafkaCluster, topic_name: str
) -> None:
    create_topic(three_brokers, topic_name, partitions=3, copies=1)
    homes = leaders(three_brokers, topic_name, partitions=3)
    home = homes[1]
    lost = [number for number, each in homes.items() if each == home]
    three_brokers.stop_broker(home)
    connection = connection_to(three_brokers.bootstrap_servers)

    with PositionStore(connection, topic_name, "A", timeout=3) as opened:
        with pytest.raises(TransientError, match="no leader") as reading:
            opened.read_all()
        with SmallTopicWriter(connection, topic_name, timeout=3) as writer, pytest.raises(TransientError) as writing:
            writer.write([NewRecord(1, b"key", b"value")])

    for error in (reading.value, writing.value):
        assert "no leader" in error.what
        assert (error.where.topic, error.where.partition) == (topic_name, lost[0])
        assert "--unavailable-partitions" in error.action
        assert "bootstrap.servers" not in str(error)
