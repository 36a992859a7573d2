"""What the assembler makes fits the target wherever the records do, and bad bytes end nothing but their partition.

Batches that are sound and too large to look into, and machines without memory: neither is damage.

Batches that go on as they are stay where they were received, as long as that keeps little else in memory.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirror_lib.errors import CorruptBatchError, OversizedBatchError
from mirror_lib.outside_limits import BATCH_BODY_BYTES, BATCH_RECORDS
from mirror_lib.records.assemble import BatchAssembler
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import RecordError, read_records
from mirror_lib.records.split import halves, readable
from mirror_lib.records.stamping import stamp
from tests.support.records.record_batches import (
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    SourceRecord,
    assembler,
    batch,
    content,
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


ZSTD = 4
MEBIBYTE = 1 << 20
RECORDS = BATCH_BODY_BYTES // MEBIBYTE + 8


@cache
def oversized() -> bytes:
    """Some kilobytes of zeros: valid, and more than the bound when they are decompressed."""
    return batch([SourceRecord(number, value=bytes(MEBIBYTE)) for number in range(RECORDS)], codec=ZSTD)


def assembling(*, start: int, skip: bool) -> BatchAssembler:
    large = {"batch_max_bytes": MEBIBYTE, "target_max_message_bytes": 200 * MEBIBYTE}
    return assembler(start=start, end=RECORDS, passthrough_min_bytes=0, skip=skip, **large)


def test_from_its_middle_it_ends_the_partition_whatever_the_policy(subtests: pytest.Subtests) -> None:
    for leave_out in (False, True):
        with subtests.test(leave_out=leave_out):
            subject = assembling(start=1, skip=leave_out)

            assert subject.feed(memoryview(oversized())) == []

            assert isinstance(subject.failure, OversizedBatchError)
            assert subject.failure.where.offset == 1
            assert "mirror.poison.policy" not in str(subject.failure)
            assert subject.take_skipped() == []
            assert subject.next_offset == 1


def test_one_that_a_target_refuses_is_not_taken_for_one_that_cannot_be_read() -> None:
    (ready,) = assembling(start=0, skip=True).feed(memoryview(oversized()))
    assert isinstance(ready, ReadyBatch)

    with pytest.raises(OversizedBatchError):
        halves(ready)
    with pytest.raises(OversizedBatchError):
        readable(ready)


def test_more_records_than_bytes_are_damage_and_more_than_can_be_looked_at_are_not() -> None:
    with pytest.raises(RecordError, match="3 records in 2 bytes"):
        list(read_records(bytes(2), base_offset=0, base_timestamp=0, count=3))
    with pytest.raises(OversizedBatchError, match=str(BATCH_RECORDS)):
        list(read_records(bytes(BATCH_RECORDS + 1), base_offset=0, base_timestamp=0, count=BATCH_RECORDS + 1))


_WITHOUT_MEMORY = """\
import resource
from tests.support.records.record_batches import SourceRecord, batch
from mirror_lib.errors import Where
from mirror_lib.records.assemble import BatchAssembler, BatchSizes

sound = batch([SourceRecord(number, value=b"v" * 50) for number in range(10)], codec=4)
sizes = BatchSizes(0, 1 << 20, 1 << 20)
subject = BatchAssembler(where=Where(), offsets=range(1, 10), sizes=sizes, read_committed=False, skip=True)
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (60 << 20), resource.RLIM_INFINITY))
try:
    subject.feed(memoryview(sound))
except MemoryError:
    print("no memory", len(subject.take_skipped()))
"""


def test_a_lack_of_memory_leaves_nothing_out() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_MEMORY], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.stdout == "no memory 0\n", done.stderr


PASSED_ON_FROM = 2_000


#: What makes a batch at an offset that cannot go on as a full one does.
Kind = Callable[[int], bytes]


def full(offset: int) -> bytes:
    return batch([SourceRecord(offset, value=b"f" * 3_000)])


def damaged(offset: int) -> bytes:
    raw = bytearray(full(offset))
    raw[1_000] ^= 1
    return bytes(raw)


def of_another_magic(offset: int) -> bytes:
    raw = bytearray(full(offset))
    raw[16] = 3
    return sealed(raw)


KINDS: dict[str, Kind] = {
    "full": full,
    "small": lambda offset: batch([SourceRecord(offset)]),
    "with a hole": lambda offset: batch([SourceRecord(offset, value=b"h" * 3_000)], last_offset=offset + 2),
    "with log-append time": lambda offset: batch(
        [SourceRecord(offset, value=b"l" * 3_000)], attributes=LOG_APPEND_TIME, max_timestamp=5
    ),
    "transactional": lambda offset: batch(
        [SourceRecord(offset, value=b"t" * 3_000)], attributes=TRANSACTIONAL, producer_id=9
    ),
    "a marker": lambda offset: batch(
        [SourceRecord(offset, value=b"m" * 3_000)], attributes=TRANSACTIONAL | CONTROL, producer_id=9
    ),
    "too large": lambda offset: batch([SourceRecord(offset, value=b"z" * 30_000)]),
    "damaged": damaged,
    "of another magic": of_another_magic,
}


def passing_on(**changed: int) -> BatchAssembler:
    return assembler(passthrough_min_bytes=PASSED_ON_FROM, batch_max_bytes=20_000, **changed)


def source(sizes: Sequence[int]) -> bytes:
    return b"".join(
        batch([SourceRecord(number, timestamp=number, value=bytes([number % 251]) * size)])
        for number, size in enumerate(sizes)
    )


def ready(data: bytes | bytearray) -> list[ReadyBatch]:
    subject = passing_on()
    out = fed(subject, data)
    assert subject.failure is None
    for number, each in enumerate(out):
        stamp(each, 4711, 1, number)
    return out


@settings(max_examples=300)
@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)) | st.just("full"), max_size=12),
    start=st.integers(0, 4),
    skipped=st.integers(0, 4),
    cut=st.integers(0, 4_000),
)
def test_whatever_stands_among_full_batches_the_same_becomes_of_it(
    kinds: list[str], start: int, skipped: int, cut: int
) -> None:
    # Three offsets apart: full batches have offsets missing before them, too.
    data = b"".join(KINDS[kind](3 * number) for number, kind in enumerate(kinds))
    data = data[: max(len(data) - cut, 0)]
    end = max(3 * len(kinds) - skipped, start)

    outcomes = []
    for memory in (bytearray(data), data):
        subject = passing_on(start=start, end=end, target_max_message_bytes=20_000)
        out = fed(subject, memory)
        for number, each in enumerate(out):
            stamp(each, 4711, 1, number)
        told = None if subject.failure is None else (type(subject.failure), str(subject.failure))
        outcomes.append((list(map(content, out)), subject.next_offset, subject.leader_epoch, told))

    assert outcomes[0] == outcomes[1]


def test_full_batches_before_a_bad_one_go_on_and_nothing_behind_it_does(subtests: pytest.Subtests) -> None:
    for kind in ("damaged", "of another magic"):
        with subtests.test(kind=kind):
            data = bytearray(full(0) + full(1) + KINDS[kind](2) + full(3))
            subject = passing_on()

            out = subject.feed(data)

            assert [each.source_next for each in out] == [1, 2]
            assert subject.next_offset == 2
            assert subject.failure is not None


def test_large_batches_stay_where_they_were_received() -> None:
    data = bytearray(source([5_000] * 10))

    out = ready(data)

    assert [each.payload.obj for each in out if isinstance(each.payload, memoryview)] == [data] * 10


def test_memory_that_may_not_be_written_to_is_left_alone() -> None:
    data = source([5_000] * 10)
    before = bytes(bytearray(data))

    ready(data)

    assert data == before


def test_one_large_batch_among_many_small_ones_does_not_keep_them_in_memory() -> None:
    data = bytearray(source([5_000] + [1_000] * 60))

    out = ready(data)

    assert not any(isinstance(each.payload, memoryview) for each in out)
