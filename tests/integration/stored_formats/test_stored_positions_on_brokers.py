"""A flow of today finds in its position topic what every version has stored there, and claims behind it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import PositionState
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.config.model import ClientSettings
from mirror_lib.topology.names import TopicPartition
from tests.stored_formats.folder import FACTS, SQLITE, StoredRecord, read_json, read_records, version_folders
from tests.support.kafka import create_topic
from tests.support.mirrored_topic import MirroredTopic

STORED_TOPIC = "mm2-offsets.east.internal"


@pytest.fixture(params=version_folders(), ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


def write(servers: str, topic: str, records: list[StoredRecord]) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 3})
    for record in records:
        producer.produce(topic, key=record.key, value=record.value, partition=record.partition)
    assert producer.flush(30) == 0


def test_stored_positions_are_read_and_the_next_claim_counts(mirrored: MirroredTopic, folder: Path) -> None:
    records = [each for each in read_records(folder / "kafka" / "positions.jsonl") if each.topic == STORED_TOPIC]
    create_topic(mirrored.target, mirrored.name, partitions=5, configs={"cleanup.policy": "compact"})
    write(mirrored.target.bootstrap_servers, mirrored.name, records)
    servers = {"bootstrap.servers": mirrored.target.bootstrap_servers}
    connection = Connection.from_settings(ClientSettings(cluster="west", role="internal", properties=servers))
    facts = read_json(folder / FACTS[SQLITE])

    with PositionStore(connection, mirrored.name, "east") as store:
        before = store.read_all()
        refunds = TopicPartition("refunds", 0)
        claim = before.claims[refunds] + 1
        interrupted = before.positions[refunds].position
        store.write([replace(interrupted, state=PositionState.CLOSED, offset=34, claim=claim)])
        after = store.read_all()

    for fact in (each for each in facts["positions"] if each["flow"] == "east->west"):
        found = before.positions[TopicPartition(fact["topic"], fact["partition"])].position
        assert (found.offset + 1, found.target_offset) == (fact["next_offset"], fact["target_offset"])
    (fact,) = facts["open_positions"]
    assert (interrupted.state, interrupted.offset + 1) == (PositionState.OPEN, fact["next_offset"])
    values = [json.loads(each.value) for each in records if each.value and b'"refunds"' in (each.key or b"")]
    assert claim == max(value["claim"] for value in values) + 1
    assert (after.positions[refunds].position.offset, after.claims[refunds]) == (34, claim)
    assert TopicPartition("prices", 0) not in before.positions
