"""Batches that go on as they are stay where they were received, as long as that keeps little else in memory."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.cluster.batches.assemble import BatchAssembler, ReadyBatch
from mirror_lib.cluster.batches.stamp import stamp
from tests.support.record_batches import SourceRecord, batch

PASSED_ON_FROM = 2_000


def assembler() -> BatchAssembler:
    return BatchAssembler(
        topic="orders",
        partition=0,
        start=0,
        end=1 << 40,
        passthrough_min_bytes=PASSED_ON_FROM,
        batch_max_bytes=20_000,
        target_max_message_bytes=1_048_588,
        read_committed=False,
    )


def source(sizes: Sequence[int]) -> bytes:
    return b"".join(
        batch([SourceRecord(number, timestamp=number, value=bytes([number % 251]) * size)])
        for number, size in enumerate(sizes)
    )


def ready(data: bytes | bytearray) -> list[ReadyBatch]:
    subject = assembler()
    out = subject.feed(data)
    held = subject.flush()
    assert subject.failure is None
    out += [held] if held is not None else []
    for number, each in enumerate(out):
        stamp(each, 4711, 1, number)
    return out


@settings(max_examples=200)
@given(sizes=st.lists(st.sampled_from([1, 50, 1_900, 2_000, 5_000]), max_size=30))
def test_memory_that_may_be_written_to_gives_the_same_batches_as_other_memory(sizes: list[int]) -> None:
    data = source(sizes)

    in_place, copied = ready(bytearray(data)), ready(data)

    assert [bytes(each.payload) for each in in_place] == [bytes(each.payload) for each in copied]
    assert [(each.source_runs, each.source_next, each.count) for each in in_place] == [
        (each.source_runs, each.source_next, each.count) for each in copied
    ]


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
