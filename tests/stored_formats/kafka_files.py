"""The records of the product's own topics as they are, by kind, each with the name of its form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.stored_formats import copies, moves, seldom, transforms
from tests.stored_formats.folder import StoredRecord, write_records
from tests.stored_formats.scene import Scene
from tests.support.kafka import admin, consume

#: Source aliases of all flows, each with a position topic of its own.
_SOURCES = (
    copies.SOURCE,
    transforms.SOURCE,
    transforms.SOURCE_OF_MERGE,
    moves.SOURCE,
    moves.TARGET,
    moves.LOST_SOURCE,
    moves.REFUGE,
    seldom.UNFENCED_SOURCE,
)
#: Optional fields of a position that name its form, in this order.
_NAMING = ("left_out", "runs", "routes", "in_transactions", "backfill")


def write_kafka_files(scene: Scene, folder: Path) -> dict[str, int]:
    """Write a file per kind; return the number of records of each."""
    position_topics = [f"mm2-offsets.{alias}.internal" for alias in _SOURCES]
    kinds: dict[str, Iterator[StoredRecord]] = {
        "positions": _records(scene, position_topics, position_form),
        "offset-syncs": _records(scene, ["mm2-offset-syncs."], lambda _: "offset-sync"),
        "checkpoints": _records(scene, [f"{copies.SOURCE}.checkpoints.internal"], lambda _: "checkpoint"),
        "heartbeats": _records(scene, ["heartbeats"], lambda _: "heartbeat"),
        "quarantine": _records(scene, [f"mm2-quarantine.{copies.SOURCE}.internal"], _quarantine_form),
    }
    return {kind: write_records(folder / f"{kind}.jsonl", found) for kind, found in kinds.items()}


def position_form(record: StoredRecord) -> str:
    """Name of a position's form by the fields of its JSON; it says nothing about their meaning."""
    if record.value is None:
        return "forgotten"
    fields = json.loads(record.value)
    if "state" not in fields:
        return "mirror-maker"
    words = [str(fields["state"]), *(name.replace("_", "-") for name in _NAMING if name in fields)]
    if "producer_id" not in fields:
        words.append("without-writer")
    if "target_offset" not in fields:
        words.append("without-target-offset")
    if "leader_epoch" not in fields:
        words.append("without-leader-epoch")
    if (record.key or b"").startswith(b'["MirrorBackfill-'):
        words.append("of-backfill")
    return " ".join(words)


def _quarantine_form(record: StoredRecord) -> str:
    headers = dict(record.headers)
    return f"{(headers.get('unit') or b'').decode()} {(headers.get('part') or b'').decode()}"


def _records(scene: Scene, names: list[str], form: Callable[[StoredRecord], str]) -> Iterator[StoredRecord]:
    """Records of the topics with these names, on both clusters; a name that ends with a dot is a beginning."""
    for cluster in (scene.pair.source, scene.pair.target):
        topics = sorted(admin(cluster).list_topics(timeout=20).topics)
        for topic in (topic for topic in topics if any(_is_meant(topic, name) for name in names)):
            for record in consume(cluster, topic):
                stored = StoredRecord(
                    topic=topic,
                    partition=record.partition,
                    offset=record.offset or 0,
                    timestamp_ms=record.timestamp_ms or 0,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,
                )
                yield replace(stored, form=form(stored))


def _is_meant(topic: str, name: str) -> bool:
    return topic.startswith(name) if name.endswith(".") else topic == name
