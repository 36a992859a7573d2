"""Batches that go on as they are stay where they were received, as long as that keeps little else in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.records.assemble import BatchAssembler, ReadyBatch
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
    sealed,
)

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


def assembling(**changed: int) -> BatchAssembler:
    return assembler(passthrough_min_bytes=PASSED_ON_FROM, batch_max_bytes=20_000, **changed)


def source(sizes: Sequence[int]) -> bytes:
    return b"".join(
        batch([SourceRecord(number, timestamp=number, value=bytes([number % 251]) * size)])
        for number, size in enumerate(sizes)
    )


def ready(data: bytes | bytearray) -> list[ReadyBatch]:
    subject = assembling()
    out = fed(subject, data)
    assert subject.failure is None
    for number, each in enumerate(out):
        stamp(each, 4711, 1, number)
    return out


@settings(max_examples=200)
@given(sizes=st.lists(st.sampled_from([1, 50, 1_900, 2_000, 5_000]), max_size=30))
def test_memory_that_may_be_written_to_gives_the_same_batches_as_other_memory(sizes: list[int]) -> None:
    data = source(sizes)

    in_place, copied = ready(bytearray(data)), ready(data)

    assert list(map(content, in_place)) == list(map(content, copied))


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
        subject = assembling(start=start, end=end, target_max_message_bytes=20_000)
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
            subject = assembling()

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
