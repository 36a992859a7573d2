"""What brokers answer to DescribeProducers and DescribeTransactions, version 0 of both (KIP-664)."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from mirror_lib.topology.names import TopicPartition

_NO_TAGS = b"\0"


def described_producers(
    partition: TopicPartition, producers: Iterable[tuple[int, int, int]] = (), *, error_code: int = 0
) -> memoryview:
    """The producers of a partition: id, epoch, and where the open transaction begins (-1 for none)."""
    states = [
        struct.pack(">qiiqiq", producer_id, epoch, 7, 1_700_000_000_000, 2, open_from) + _NO_TAGS
        for producer_id, epoch, open_from in producers
    ]
    found = struct.pack(">ih", partition.partition, error_code) + b"\0" + _array(states) + _NO_TAGS
    topic = _text(partition.topic) + _array([found]) + _NO_TAGS
    return memoryview(_NO_TAGS + bytes(4) + _array([topic]) + _NO_TAGS)


def described_transaction(
    name: str,
    state: str,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    partitions: Iterable[TopicPartition] = (),
    error_code: int = 0,
) -> memoryview:
    """One transaction, as its coordinator tells it."""
    topics = [_text(topic) + _array([struct.pack(">i", partition)]) + _NO_TAGS for topic, partition in partitions]
    told = struct.pack(">h", error_code) + _text(name) + _text(state)
    told += struct.pack(">iqqh", 60_000, 1_700_000_000_000, producer_id, epoch) + _array(topics) + _NO_TAGS
    return memoryview(_NO_TAGS + bytes(4) + _array([told]) + _NO_TAGS)


def _text(text: str) -> bytes:
    raw = text.encode()
    return bytes((len(raw) + 1,)) + raw


def _array(elements: list[bytes]) -> bytes:
    return bytes((len(elements) + 1,)) + b"".join(elements)
