"""Internal topics with records of other writers: whoever reads them takes a bounded memory and finds the newest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.topics import position_store
from mirror_lib.cluster.topics.checkpoints import read_checkpoints, read_offset_syncs
from mirror_lib.cluster.topics.mm2_formats import Checkpoint, Heartbeat, OffsetSync
from mirror_lib.cluster.topics.position_format import Position, PositionKeys, encode_value
from mirror_lib.cluster.topics.position_store import PositionStore, read_last_heartbeats
from mirror_lib.errors import OversizedBatchError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.records.header import Codec
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, create_topic, produce, watermarks
from tests.support.own_process import MEBIBYTE, measured
from tests.support.records.record_batches import SourceRecord, batch

#: More than what a quiet reader takes.
_ALLOWED = 150 * MEBIBYTE
_KEYS = PositionKeys("A")
#: The newest of its kind in each topic, behind which the attacks are written.
_GENUINE = {
    "heartbeats": Heartbeat("A", "B", 1),
    "checkpoints": Checkpoint("g", "t", 0, 5, 6),
    "syncs": OffsetSync("t", 0, 5, 6),
}


def read_all(servers: str, names: dict[str, str], ends: dict[str, int]) -> dict[str, object]:
    """What each reader finds; in a process of its own."""
    # However busy the machine is.
    position_store._HEARTBEATS_SECONDS = seconds = 250.0
    connection = Connection("B", (servers,))
    found: dict[str, object] = {}
    for kind, name in names.items():
        try:
            if kind == "heartbeats":
                found[kind] = [each for each, _ in read_last_heartbeats(connection, name, {0: ends[kind]}).heartbeats]
            elif kind == "positions":
                with PositionStore(connection, name, "A", timeout=seconds) as store:
                    found[kind] = [each.position for each in store.read_all().positions.values()]
            else:
                read: Callable[..., object] = read_checkpoints if kind == "checkpoints" else read_offset_syncs
                found[kind] = list(read(connection, name, timeout=seconds).entries)
        except OversizedBatchError as error:
            found[kind] = error.reason
    return found


class Topics:
    """The four topics of a flow, each with one genuine record."""

    def __init__(self, cluster: KafkaCluster, name: str) -> None:
        self.cluster = cluster
        self.names = {kind: f"{name}-{kind}" for kind in ("heartbeats", "checkpoints", "syncs", "positions")}
        for topic in self.names.values():
            create_topic(cluster, topic, configs={"cleanup.policy": "compact", "max.message.bytes": str(64 * MEBIBYTE)})
        position = Position("t", 0, 7)
        produce(
            cluster, self.names["positions"], [Record(key=_KEYS.encode(position.source), value=encode_value(position))]
        )
        for kind, genuine in _GENUINE.items():
            produce(cluster, self.names[kind], [Record(key=genuine.key(), value=genuine.value())])

    def attack(self, raw: bytes, times: int = 1, kinds: tuple[str, ...] = ()) -> None:
        """Append a batch to the topics again and again."""

        async def append() -> None:
            async with open_clients(Connection("B", (self.cluster.bootstrap_servers,))) as (client,):
                await client.refresh_leaders(self.names.values())
                for name in (self.names[kind] for kind in kinds or self.names):
                    leader = client.leader(TopicPartition(name, 0))
                    assert leader is not None
                    for _ in range(times):
                        (done,) = await client.produce(leader, [(name, 0, raw)], timeout_ms=60_000)
                        assert done.error_code == 0

        asyncio.run(append())

    def read(self) -> tuple[dict[str, object], int]:
        ends = {kind: watermarks(self.cluster, name)[1] for kind, name in self.names.items()}
        found = measured(read_all, self.cluster.bootstrap_servers, self.names, ends)
        return found.result, found.grown


def many(keys: Iterable[bytes], value: bytes, *, codec: Codec) -> bytes:
    return batch([SourceRecord(number, key=key, value=value) for number, key in enumerate(keys)], codec=codec)


def test_bombs_and_hundreds_of_thousands_of_foreign_records_take_little_memory(
    kafka_pair: KafkaPair, topic_name: str
) -> None:
    topics = Topics(kafka_pair.target, topic_name)
    genuine = {kind: [each] for kind, each in _GENUINE.items()} | {"positions": [Position("t", 0, 7)]}
    quiet, usual = topics.read()
    assert quiet == genuine

    foreign = many((b"%d" % number for number in range(30_000)), bytes(100), codec=Codec.ZSTD)
    topics.attack(foreign)
    topics.attack(foreign, 4, ("heartbeats",))
    # Keys as those of this program, of another cluster, and values of a wrong format.
    other = PositionKeys("C").encode(Position("t", 0, 7).source)
    topics.attack(many([other, Heartbeat("A", "B", 0).key()[:-1], b""] * 5, bytes(MEBIBYTE), codec=Codec.GZIP), 5)
    topics.attack(many([b""] * 90_000, b"", codec=Codec.ZSTD))
    # Heartbeats with another key each, and a megabyte behind their time.
    for first in range(0, 300, 15):
        fat = [Heartbeat("A", str(number), 0) for number in range(first, first + 15)]
        records = [SourceRecord(n, key=each.key(), value=each.value() + bytes(MEBIBYTE)) for n, each in enumerate(fat)]
        topics.attack(batch(records, codec=Codec.ZSTD), 1, ("heartbeats",))
    found, grown = topics.read()
    assert found == genuine
    assert grown < usual + _ALLOWED

    topics.attack(many([b"key"], bytes(200 * MEBIBYTE), codec=Codec.GZIP), 3, ("heartbeats",))
    for kind, codec in (("checkpoints", Codec.ZSTD), ("syncs", Codec.LZ4), ("positions", Codec.SNAPPY)):
        topics.attack(many([b"key"], bytes(60 * MEBIBYTE), codec=codec), 1, (kind,))
    flood = (Heartbeat("A", "B", number) for number in range(5_000))
    records = [SourceRecord(number, key=each.key(), value=each.value()) for number, each in enumerate(flood)]
    topics.attack(batch(records, codec=Codec.ZSTD), 2, ("heartbeats",))
    found, grown = topics.read()
    assert found == dict.fromkeys(genuine, "oversized-batch") | {"heartbeats": [Heartbeat("A", "B", 4_999)]}
    assert grown < usual + _ALLOWED
