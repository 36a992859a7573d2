"""Whether what a broker sent is whole and undamaged, before anything is made of it."""

from __future__ import annotations

from crc32c import crc32c

from mirror_lib.cluster.batches.header import ATTRIBUTES_AT, HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT, parse_header


def sound_batches(records: memoryview) -> int | None:
    """How many whole batches stand at the beginning of `records`; None when one of them is damaged.

    The last one may be cut off, as brokers do. Message sets of before Kafka 0.11 are counted and not looked at.
    """
    position, count = 0, 0
    while len(records) - position > MAGIC_AT:
        end = position + LOG_OVERHEAD + int.from_bytes(records[position + 8 : position + LOG_OVERHEAD], "big")
        if end > len(records):
            # A damaged length looks like a batch that is cut off; whoever asks for it again gets no further.
            break
        if records[position + MAGIC_AT] >= MAGIC:
            if end - position < HEADER_SIZE or records[position + MAGIC_AT] > MAGIC:
                return None
            if crc32c(records[position + ATTRIBUTES_AT : end]) != parse_header(records, position).crc:
                return None
        position, count = end, count + 1
    return count
