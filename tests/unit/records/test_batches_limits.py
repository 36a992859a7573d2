"""What the assembler makes fits the target wherever the records do, and bad bytes end nothing but their partition."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirror_lib.errors import CorruptBatchError
from mirror_lib.records.assemble import BatchAssembler, ReadyBatch
from mirror_lib.records.stamping import stamp
from tests.support.records.record_batches import (
    DELETE_HORIZON,
    SourceRecord,
    assembler,
    batch,
    fed,
    message_set,
    read_with_aiokafka,
    sealed,
)


def stamped(subject: BatchAssembler, fetches: Sequence[bytes]) -> list[ReadyBatch]:
    out = fed(subject, *fetches)
    for ready in out:
        stamp(ready, 4711, 0, 0)
    return out


@settings(max_examples=80, deadline=None)
@given(
    counts=st.lists(st.integers(min_value=1, max_value=220), min_size=1, max_size=12),
    value=st.binary(max_size=3),
    target_max=st.integers(min_value=1_500, max_value=2_500),
    codec=st.sampled_from([0, 1, 3]),
    steps=st.lists(st.integers(min_value=-(2**40), max_value=2**40), min_size=30, max_size=30),
    flush_each=st.booleans(),
    magic=st.sampled_from([0, 1, 2, 2]),
)
def test_small_records_of_all_formats_always_fit_a_small_target(
    counts: list[int], value: bytes, target_max: int, codec: int, steps: list[int], flush_each: bool, magic: int
) -> None:
    # Renumbering lets records grow: their offset and timestamp deltas take more bytes than in the source's batch.
    raws, offset, time = [], 0, 2**42
    for count, step in zip(counts, steps, strict=False):
        time = max(time + step, 0)
        members = [SourceRecord(offset + n, timestamp=time, value=value) for n in range(count)]
        # Old messages have no valid form with LZ4.
        old = magic < 2
        raws.append(message_set(members, magic=magic, codec=codec % 3) if old else batch(members, codec=codec))
        offset += count
    subject = assembler(target_max_message_bytes=target_max)

    out = stamped(subject, raws if flush_each else [b"".join(raws)])

    assert subject.failure is None
    assert sum(ready.count for ready in out) == offset
    assert all(len(ready.payload) <= target_max for ready in out)
    assert [record[3] for ready in out for record in read_with_aiokafka(ready.payload)] == [value] * offset


def test_a_well_compressed_small_batch_is_not_compressed_again_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # It is too large for others to join it, and our compressor may not be as good as its producer's.
    monkeypatch.setattr("mirror_lib.records.builder.compress", lambda *_: bytes(20_000))
    big = batch([SourceRecord(n, value=bytes(5_000)) for n in range(100)], codec=1)
    small = batch([SourceRecord(100, value=b"v")], codec=1)
    assert len(big) < 16_384
    subject = assembler(target_max_message_bytes=5_000)

    first, second = stamped(subject, [big, small])

    assert subject.failure is None
    assert (first.count, len(first.payload)) == (100, len(big))
    assert second.count == 1


def test_times_that_no_batch_can_hold_end_only_their_partition() -> None:
    # Java computes such times modulo 2**64; a broker takes them where message.timestamp.after.max.ms allows it.
    late = 2**63 - 1
    raw = bytearray(batch([SourceRecord(0, timestamp=5), SourceRecord(1, timestamp=9)], attributes=DELETE_HORIZON))
    struct.pack_into(">q", raw, 27, late)
    subject = assembler()

    assert stamped(subject, [batch([SourceRecord(0)])]) != []
    struct.pack_into(">q", raw, 0, 1)
    assert stamped(subject, [sealed(raw)]) == []

    assert isinstance(subject.failure, CorruptBatchError)
    assert subject.failure.where.offset == 1


@pytest.mark.parametrize("position", [27, 35])
@settings(max_examples=150, deadline=None)
@given(
    body=st.binary(max_size=80),
    count=st.integers(-2, 5),
    delta=st.integers(-2, 5),
    bits=st.integers(0, 0x7F),
    time=st.integers(-(2**63), 2**63 - 1),
)
@example(body=b"\x80\x80\x80A", count=0, delta=0, bits=2, time=0)  # snappy: 136 MB of four bytes
def test_whatever_stands_in_a_batch_is_delivered_or_kept_as_a_failure(
    position: int, body: bytes, count: int, delta: int, bits: int, time: int
) -> None:
    raw = bytearray(batch([SourceRecord(0)]))
    raw[61:] = body
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">hi", raw, 21, bits, delta)
    struct.pack_into(">i", raw, 57, count)
    struct.pack_into(">q", raw, position, time)
    subject = assembler(passthrough_min_bytes=10**6)

    stamped(subject, [sealed(raw) + batch([SourceRecord(10)], codec=bits % 5)])

    assert subject.failure is None or isinstance(subject.failure, CorruptBatchError)
