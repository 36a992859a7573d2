"""Kafka's default partitioner for records with a key, so that ours land beside those that a Java producer wrote."""

from __future__ import annotations

import struct

_WORD = struct.Struct("<I")
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash as an unsigned number (Java `org.apache.kafka.common.utils.Utils.murmur2`, which is signed)."""
    length = len(data)
    whole = length & ~3
    h = (_SEED ^ length) & _MASK
    for (word,) in _WORD.iter_unpack(data[:whole]):
        k = word * _MULTIPLIER & _MASK
        h = (h * _MULTIPLIER ^ (k ^ k >> 24) * _MULTIPLIER) & _MASK
    if whole != length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    h = (h ^ h >> 13) * _MULTIPLIER & _MASK
    return h ^ h >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """The partition that Java's producer chooses for a key (`BuiltInPartitioner.partitionForKey`)."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
