"""Consumers that keep their offsets themselves move to a copy with the same offsets, and read each record once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyspark
import pytest
from confluent_kafka import Consumer, TopicPartition

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.jars import Artifact, JarSet, fetch
from tests.support.clusters import KafkaPair
from tests.support.kafka import consume, records, transaction
from tests.support.mirrored_topic import MirroredTopic
from tests.support.spark import streaming_job

_PARTITIONS = 2
_CONNECTOR = Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__)
#: The others that it depends on are in PySpark.
_NEEDED = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
_Row = tuple[int, int, str]


@pytest.fixture
def mirrored(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> MirroredTopic:
    """A topic of the shared clusters."""
    return MirroredTopic(kafka_pair, topic_name, tmp_path)


@pytest.fixture(scope="module")
def connector() -> str:
    """The jars of Spark's connector to Kafka, as `spark.jars` has them."""
    folder = fetch(JarSet(f"spark-kafka-{_CONNECTOR.version}", _CONNECTOR.version, (_CONNECTOR,)))
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")) if jar.name.startswith(_NEEDED))


def test_a_streaming_checkpoint_and_offsets_in_a_database_continue_on_the_target(
    mirrored: MirroredTopic, tmp_path: Path, connector: str
) -> None:
    """Without translation: markers of transactions and aborted records are holes on both sides."""
    flow = mirrored.flow(
        {
            "A->B.mirror.offsets": "same",
            "A->B.replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "A.consumer.isolation.level": "read_committed",
        }
    )
    mirrored.create(partitions=_PARTITIONS)
    database = _Database(tmp_path / "offsets.sqlite3", mirrored.name)
    write(mirrored, 0)
    stream(mirrored.source, mirrored, tmp_path, connector)
    database.read(mirrored.source, at_most=70)
    assert flow.run().errors == ()
    write(mirrored, 1_000)
    assert flow.run().errors == ()

    stream(mirrored.target, mirrored, tmp_path, connector)
    database.read(mirrored.target, at_most=10_000)

    written = sorted(
        (each.partition, each.offset or 0, (each.value or b"").decode())
        for each in consume(mirrored.source, mirrored.name, isolation="read_committed")
    )
    assert len(written) == 2 * _PARTITIONS * 73
    assert sorted(streamed(tmp_path)) == written
    assert sorted(database.rows()) == written


def write(mirrored: MirroredTopic, start: int) -> None:
    """Records, committed and aborted transactions to each partition; the last record of a partition is aborted."""
    for number in range(_PARTITIONS):
        mirrored.produce(records(50, start=start, partition=number))
        for commit in (True, False, True, False):
            values = [b"%d-%d-%d" % (start, number, each) for each in range(10)]
            transaction(mirrored.source, mirrored.name, values, commit=commit, partition=number)
        mirrored.produce(records(3, start=start + 500, partition=number))
        transaction(mirrored.source, mirrored.name, [b"never"], commit=False, partition=number)


def stream(cluster: KafkaCluster, mirrored: MirroredTopic, folder: Path, jars: str) -> None:
    """Run the query until it has read all that the topic has."""
    arguments = cluster.bootstrap_servers, mirrored.name, str(folder / "checkpoint"), str(folder / "output"), jars
    done = subprocess.run(
        [sys.executable, streaming_job.__file__, *arguments], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4_000:]


def streamed(folder: Path) -> Iterator[_Row]:
    """All rows that the query has written."""
    for file in (folder / "output").glob("*.json"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            yield row["partition"], row["offset"], row["value"]


class _Database:
    """A consumer that stores what it has read together with its next offset."""

    def __init__(self, file: Path, topic: str) -> None:
        self._file, self._topic = file, topic
        with closing(self._open()) as database, database:
            database.execute("CREATE TABLE read (partition INT, offset INT, value TEXT)")
            database.execute("CREATE TABLE next (partition INT PRIMARY KEY, offset INT)")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file)

    def rows(self) -> list[_Row]:
        """What it has read."""
        with closing(self._open()) as database:
            return database.execute("SELECT partition, offset, value FROM read").fetchall()

    def read(self, cluster: KafkaCluster, *, at_most: int) -> None:
        """Read on from the stored offsets, to the ends or some records."""
        settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        with closing(self._open()) as database, closing(Consumer(settings)) as consumer:
            known = dict(database.execute("SELECT partition, offset FROM next").fetchall())
            consumer.assign([TopicPartition(self._topic, each, known.get(each, 0)) for each in range(_PARTITIONS)])
            left, ended = at_most, set[int]()
            while left and len(ended) < _PARTITIONS:
                message = consumer.poll(30)
                assert message is not None
                number = message.partition()
                assert number is not None
                if message.error() is not None:
                    ended.add(number)
                    continue
                with database:
                    offset, value = message.offset(), message.value()
                    assert offset is not None
                    assert isinstance(value, bytes)
                    database.execute("INSERT INTO read VALUES (?, ?, ?)", (number, offset, value.decode()))
                    database.execute("INSERT OR REPLACE INTO next VALUES (?, ?)", (number, offset + 1))
                left -= 1
