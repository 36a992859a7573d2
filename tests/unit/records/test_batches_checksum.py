"""A batch that is passed on gets the checksum of its new header without another look at its body."""

from __future__ import annotations

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.records.assemble import ReadyBatch
from mirror_lib.records.header import ATTRIBUTES_AT, CRC_AT, TRANSACTIONAL_BIT, parse_header
from mirror_lib.records.stamping import change_of_checksum, stamp
from tests.support.records.record_batches import SourceRecord, assembler, batch

_STEP = 4096
SIZES = st.one_of(
    st.integers(0, 3 * _STEP),
    st.integers(0, 40).map(lambda steps: steps * _STEP),
    st.sampled_from([16 * _STEP - 1, 16 * _STEP, 16 * _STEP + 1, 256 * _STEP, 257 * _STEP + 5]),
)


def passed_on(value_bytes: int) -> ReadyBatch:
    subject = assembler(end=1, passthrough_min_bytes=0, target_max_message_bytes=1 << 24)
    (ready,) = subject.feed(bytearray(batch([SourceRecord(0, value=b"v" * value_bytes)])))
    return ready


@given(one=st.binary(min_size=40, max_size=40), other=st.binary(min_size=40, max_size=40), size=SIZES)
def test_the_difference_of_two_beginnings_tells_the_difference_of_two_messages(
    one: bytes, other: bytes, size: int
) -> None:
    rest = bytes(number * 31 & 255 for number in range(256)) * (size // 256 + 1)
    rest = rest[:size]

    change = change_of_checksum(bytes(a ^ b for a, b in zip(one, other, strict=True)), size)

    assert change == crc32c(one + rest) ^ crc32c(other + rest)


@given(
    producer_id=st.integers(-1, 2**63 - 1),
    epoch=st.integers(-1, 2**15 - 1),
    sequence=st.integers(-1, 2**31 - 1),
    size=st.integers(0, 3 * _STEP),
    in_transaction=st.booleans(),
)
def test_whoever_sends_it_the_checksum_is_that_of_the_whole_batch(
    producer_id: int, epoch: int, sequence: int, size: int, *, in_transaction: bool
) -> None:
    ready = passed_on(size)

    stamp(ready, 1, 2, 3, in_transaction=in_transaction)
    stamp(ready, producer_id, epoch, sequence, in_transaction=in_transaction)

    header = parse_header(ready.payload)
    assert header.crc == crc32c(ready.payload[ATTRIBUTES_AT:])
    assert bool(header.attributes & TRANSACTIONAL_BIT) == in_transaction


def test_what_happens_to_the_body_after_the_check_does_not_get_a_valid_checksum() -> None:
    ready = passed_on(100)
    ready.payload[-5] ^= 1

    stamp(ready, 1, 2, 3)

    told = int.from_bytes(ready.payload[CRC_AT:ATTRIBUTES_AT], "big")
    assert told != crc32c(ready.payload[ATTRIBUTES_AT:])
