"""Validates fetched batches before they are used."""

from __future__ import annotations

from crc32c import crc32c

from mirror_lib.records.header import ATTRIBUTES_AT, HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT, parse_header


def sound_batches(records: memoryview) -> int | None:
    """The number of whole batches at the start of `records`; None if one of them is damaged.

    The last one may be incomplete, as brokers send it. Message sets from before Kafka 0.11 are counted, not checked.
    """
    position, count = 0, 0
    while len(records) - position > MAGIC_AT:
        end = position + LOG_OVERHEAD + int.from_bytes(records[position + 8 : position + LOG_OVERHEAD], "big")
        if end > len(records):
            # A damaged length looks like an incomplete batch; the next fetch makes no progress then.
            break
        if records[position + MAGIC_AT] >= MAGIC:
            if end - position < HEADER_SIZE or records[position + MAGIC_AT] > MAGIC:
                return None
            if crc32c(records[position + ATTRIBUTES_AT : end]) != parse_header(records, position).crc:
                return None
        position, count = end, count + 1
    return count
