"""Batches that are sound and too large to look into, and machines without memory: neither is damage."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from mirror_lib.errors import OversizedBatchError
from mirror_lib.outside_limits import BATCH_BODY_BYTES, BATCH_RECORDS
from mirror_lib.records.assemble import BatchAssembler
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import RecordError, read_records
from mirror_lib.records.split import halves, readable
from tests.support.records.record_batches import SourceRecord, assembler, batch

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


def test_from_its_first_offset_it_goes_on_as_it_is() -> None:
    subject = assembling(start=0, skip=True)

    (ready,) = subject.feed(memoryview(oversized()))

    assert (ready.count, subject.next_offset, subject.failure) == (RECORDS, RECORDS, None)


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
from mirror_lib.records.assemble import BatchAssembler

sound = batch([SourceRecord(number, value=b"v" * 50) for number in range(10)], codec=4)
subject = BatchAssembler(topic="t", partition=0, start=1, end=10, passthrough_min_bytes=0, batch_max_bytes=1 << 20,
                         target_max_message_bytes=1 << 20, read_committed=False, skip=True)
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
