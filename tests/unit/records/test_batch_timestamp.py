"""The age of a batch, by its header alone."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.raw.timestamps import batch_timestamp
from mirror_lib.records.header import DELETE_HORIZON_BIT, HEADER_SIZE, LOG_APPEND_TIME_BIT, new_batch

FIRST, YOUNGEST = 1_700_000_000_000, 1_700_000_009_000
#: Of a batch's header, behind offset, length, leader epoch, magic and checksum.
ATTRIBUTES_AT = 21


def batch(attributes: int = 0) -> bytearray:
    made = new_batch(b"body", codec=0, count=2, first_timestamp=FIRST, max_timestamp=YOUNGEST)
    struct.pack_into(">h", made, ATTRIBUTES_AT, attributes)
    return made


def test_a_batch_is_as_old_as_its_first_record_or_the_youngest_if_that_has_no_time_or_without_any_has_no_age() -> None:
    assert batch_timestamp(memoryview(batch())) == FIRST
    for bit in (LOG_APPEND_TIME_BIT, DELETE_HORIZON_BIT):
        assert batch_timestamp(batch(bit)) == YOUNGEST, bit
    assert batch_timestamp(new_batch(b"", codec=0, count=1, first_timestamp=-1, max_timestamp=-1)) is None


def test_old_formats_have_a_time_since_magic_1() -> None:
    """Offset, size, checksum, magic, attributes, timestamp (KIP-32)."""
    message = struct.pack(">qiIbbq", 5, 22, 0, 1, 0, FIRST)

    assert batch_timestamp(message) == FIRST
    assert batch_timestamp(struct.pack(">qiIbbq", 5, 22, 0, 0, 0, FIRST)) is None


@given(st.binary(max_size=HEADER_SIZE - 1))
def test_what_is_cut_short_or_garbled_has_no_age_or_any_but_never_fails(data: bytes) -> None:
    found = batch_timestamp(data)

    assert found is None or found >= 0
