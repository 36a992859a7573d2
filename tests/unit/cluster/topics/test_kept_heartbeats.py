"""Heartbeats of other writers: bounded memory, and the newest one is found."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from mirror_lib.cluster.topics.kept_heartbeats import KeptHeartbeats
from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.cluster.topics.records import TopicRecord

_GENUINE = Heartbeat("A", "B", 1_000)


_FLOODS: dict[str, Callable[[int], tuple[bytes, bytes]]] = {
    "long alias": lambda number: _record(Heartbeat(f"{number:030000}", "B", 1)),
    "bytes after the key": lambda number: _record(Heartbeat(str(number), "B", 1), more_key=bytes(30_000)),
    "bytes after the value": lambda number: _record(Heartbeat(str(number), "B", 1), more_value=bytes(30_000)),
    "one key": lambda _: _record(Heartbeat("C", "B", 1), more_value=bytes(30_000)),
    "legal names": lambda number: _record(Heartbeat(f"{number:0240}", "B" * 240, 1)),
    "wide characters": lambda number: _record(Heartbeat(f"{number}" + "\U0001f600" * 100, "\U0001f600" * 100, 1)),
}


def _record(heartbeat: Heartbeat, *, more_key: bytes = b"", more_value: bytes = b"") -> tuple[bytes, bytes]:
    return heartbeat.key() + more_key, heartbeat.value() + more_value


@pytest.mark.parametrize("kind", _FLOODS)
def test_a_flood_of_heartbeats_takes_little_memory_and_hides_no_newest_one(kind: str) -> None:
    tracemalloc.start()
    try:
        kept = KeptHeartbeats()
        for number in range(3_000):
            kept.add(TopicRecord(0, number, *_FLOODS[kind](number)))
        kept.add(TopicRecord(0, 9_999, *_record(_GENUINE)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 16 << 20
    assert max(Heartbeat.decode(each.key, each.value).timestamp for each in kept) == _GENUINE.timestamp
    assert len(kept) + kept.unwanted + kept.beyond == 3_001
