"""Today's code reads the Kafka records of every version: positions, syncs, checkpoints, heartbeats, quarantine."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.cluster.topics.mm2_formats import Checkpoint, Heartbeat, OffsetSync
from mirror_lib.cluster.topics.position_format import Position, PositionKeys, PositionState, decode_value
from mirror_lib.cluster.topics.position_store import PositionSnapshot, snapshot_of
from mirror_lib.cluster.topics.records import TopicRecord
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.stored_formats.folder import FACTS, SQLITE, StoredRecord, read_json, read_records

Facts = dict[str, list[dict[str, Any]]]
#: Forms of positions that version 0.1.0 writes.
FORMS = {
    "closed",
    "closed of-backfill",
    "closed without-leader-epoch",
    "closed without-writer without-leader-epoch",
    "forgotten",
    "mirror-maker",
    "open",
    "open backfill",
    "open in-transactions",
    "open in-transactions without-leader-epoch",
    "open left-out",
    "open left-out runs",
    "open left-out runs without-leader-epoch",
    "open routes",
    "open routes without-leader-epoch",
    "open runs in-transactions without-leader-epoch",
    "open runs without-leader-epoch",
    "open without-leader-epoch",
    "open without-leader-epoch of-backfill",
    "open without-writer without-target-offset without-leader-epoch",
}


@pytest.fixture(scope="session")
def facts(folder: Path) -> Facts:
    """The ledger on SQLite is of the same story as the records."""
    return read_json(folder / FACTS[SQLITE])


@pytest.fixture(scope="session")
def positions(folder: Path) -> list[StoredRecord]:
    return read_records(folder / "kafka" / "positions.jsonl")


def alias_of(record: StoredRecord) -> str:
    """The source cluster that a position topic is about."""
    return record.topic.removeprefix("mm2-offsets.").removesuffix(".internal")


def decoded(record: StoredRecord) -> tuple[TopicPartition, Position | None]:
    connector = json.loads(record.key or b"")[0]
    source = PositionKeys(alias_of(record), connector).decode(record.key)
    assert source is not None
    return source, decode_value(source, record.value)


def snapshots(records: Iterable[StoredRecord]) -> dict[str, PositionSnapshot]:
    """What each position topic comes to, by source alias."""
    by_alias: dict[str, list[TopicRecord]] = defaultdict(list)
    for each in records:
        by_alias[alias_of(each)].append(TopicRecord(each.partition, each.offset, each.key, each.value))
    return {alias: snapshot_of(PositionKeys(alias), found, {}) for alias, found in by_alias.items()}


def pairs_of(facts: Facts, flow: str) -> dict[TopicPartition, dict[int, int]]:
    """Where records are on the target by what the logs hold."""
    return {
        TopicPartition(fact["topic"], fact["partition"]): dict(fact["pairs"])
        for fact in facts["offset_map"]
        if fact["flow"] == flow
    }


def test_there_are_positions_of_all_forms(positions: list[StoredRecord]) -> None:
    assert {record.form for record in positions} >= FORMS


def test_every_field_of_a_position_is_read(positions: list[StoredRecord]) -> None:
    for record in positions:
        source, found = decoded(record)
        key = json.loads(record.key or b"")[1]
        assert (source.topic, source.partition) == (key["topic"], key["partition"])
        if record.value is None:
            assert found is None
            continue
        assert found is not None
        fields = json.loads(record.value)
        plain = {name: value for name, value in fields.items() if name not in ("left_out", "runs", "routes")}
        assert {name: getattr(found, name) for name in plain} == plain
        assert [list(each) for each in found.skipped] == fields.get("left_out", [])
        assert [list(each) for each in found.routes] == fields.get("routes", [])
        assert bool(found.runs) == ("runs" in fields)


def test_the_part_of_the_offset_map_in_a_position_is_true(positions: list[StoredRecord], facts: Facts) -> None:
    known = pairs_of(facts, "east->west")
    checked = 0
    for record in positions:
        source, found = decoded(record)
        if alias_of(record) == "east" and found is not None and source in known:
            for run in found.runs:
                for number in range(run.count):
                    assert known[source][run.source_first + number] == run.target_first + number
                    checked += 1
    assert checked > 20


def test_the_positions_that_count_are_the_ends_of_the_logs(positions: list[StoredRecord], facts: Facts) -> None:
    read = snapshots(positions)
    closed = 0
    for fact in facts["positions"]:
        found = read[FlowId.parse(fact["flow"]).source].positions[TopicPartition(fact["topic"], fact["partition"])]
        assert found.position.offset + 1 >= fact["next_offset"], fact
        if found.position.state is PositionState.CLOSED:
            assert (found.position.offset + 1, found.position.target_offset) == (
                fact["next_offset"],
                fact["target_offset"],
            )
            closed += 1
    # Two flows end with runs that died.
    assert closed >= len(facts["positions"]) - 4
    for snapshot in read.values():
        assert not snapshot.unreadable


def test_interrupted_and_marked_and_forgotten_positions_are_known_as_such(
    positions: list[StoredRecord], facts: Facts
) -> None:
    read = snapshots(positions)["east"].positions
    for fact in facts["open_positions"]:
        found = read[TopicPartition(fact["topic"], fact["partition"])].position
        assert (found.state, found.offset + 1, found.backfill) == (PositionState.OPEN, fact["next_offset"], None)
    for fact in facts["marked_positions"]:
        found = read[TopicPartition(fact["topic"], fact["partition"])].position
        assert (found.state, found.offset, found.backfill) == (PositionState.OPEN, fact["offset"], fact["backfill"])
    for fact in facts["mirror_maker_positions"]:
        found = read[TopicPartition(fact["topic"], fact["partition"])].position
        assert found == Position(fact["topic"], fact["partition"], fact["offset"])
    for fact in facts["forgotten_positions"]:
        assert TopicPartition(fact["topic"], fact["partition"]) not in read


def test_offset_syncs_are_pairs_of_the_logs(folder: Path, facts: Facts) -> None:
    known = pairs_of(facts, "east->west")
    # What was copied twice has syncs of both times.
    for topic in ("stock", "carts"):
        known.pop(TopicPartition(topic, 0), None)
    checked = set()
    for record in read_records(folder / "kafka" / "offset-syncs.jsonl"):
        sync = OffsetSync.decode(record.key, record.value)
        source = TopicPartition(sync.topic, sync.partition)
        if source in known and sync.upstream_offset in known[source]:
            assert known[source][sync.upstream_offset] == sync.downstream_offset
            checked.add(source)
    assert {each.topic for each in checked} >= {"orders", "payments", "parcels", "legacy"}


def test_checkpoints_are_of_what_groups_had_committed(folder: Path, facts: Facts) -> None:
    known = pairs_of(facts, "east->west")
    found = {}
    for record in read_records(folder / "kafka" / "checkpoints.jsonl"):
        checkpoint = Checkpoint.decode(record.key, record.value)
        found[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint
    for fact in facts["groups"]:
        checkpoint = found[fact["group"], f"east.{fact['topic']}", fact["partition"]]
        exact = known[TopicPartition(fact["topic"], fact["partition"])].get(fact["upstream"], 2**62)
        assert checkpoint.upstream_offset == fact["upstream"]
        assert 0 < checkpoint.downstream_offset <= exact


def test_heartbeats_have_the_time_of_their_records(folder: Path) -> None:
    records = read_records(folder / "kafka" / "heartbeats.jsonl")
    read = [Heartbeat.decode(record.key, record.value) for record in records]
    assert {(beat.source, beat.target) for beat in read} == {("east", "west"), ("west", "east")}
    assert [beat.timestamp for beat in read] == [record.timestamp_ms for record in records]


def test_the_quarantine_holds_what_was_not_copied(folder: Path, facts: Facts) -> None:
    """No code of the product reads these records: operators do, by their headers."""
    by_key: dict[bytes | None, list[StoredRecord]] = defaultdict(list)
    for record in read_records(folder / "kafka" / "quarantine.jsonl"):
        by_key[record.key].append(record)
    for fact in facts["quarantine"]:
        parts = by_key.pop(f"{fact['topic']}-{fact['partition']}-{fact['offset']}".encode())
        for number, record in enumerate(parts, start=1):
            headers = {name: (value or b"").decode() for name, value in record.headers}
            expected = {
                "flow": fact["flow"],
                "topic": fact["topic"],
                "partition": str(fact["partition"]),
                "first_offset": str(fact["offset"]),
                "last_offset": str(fact["last"]),
                "reason": fact["reason"],
                "unit": fact["unit"],
                "part": f"{number}/{fact['parts']}",
            }
            assert {name: headers[name] for name in expected} == expected
            assert {*headers} - {*expected} == {"detail", "codec", "timestamp"}
        assert fact["payload"].encode() * fact["times"] in b"".join(record.value or b"" for record in parts)
    assert not by_key
