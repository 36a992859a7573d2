"""The workloads: exact batches, about half compressible."""

import pytest
from aiokafka.record.memory_records import MemoryRecords

from tools.bench.errors import BenchError
from tools.bench.transforms.cases import filter_and_mask
from tools.bench.workloads.shape import Shape, check_shape
from tools.bench.workloads.workload import EXTRA_WORKLOADS, WORKLOADS, BatchMill, Workload

_SMALL = tuple(workload.scaled(1003) for workload in (*WORKLOADS, *EXTRA_WORKLOADS))


@pytest.mark.parametrize("workload", _SMALL, ids=lambda workload: workload.name)
def test_every_record_is_made_once_in_the_shape_of_its_workload_and_can_be_read(workload: Workload) -> None:
    partitions = 3
    total, mill, shape = 0, BatchMill(workload), Shape()
    for partition in range(partitions):
        batches = list(mill.batches(partition, partitions, 1_000))
        shape.add(memoryview(b"".join(batches)))
        timestamps: list[int] = []
        records = MemoryRecords(b"".join(batches))
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            for record in batch:
                timestamps.append(record.timestamp)
                assert len(record.value) == workload.value_bytes
                assert len(record.key) == 14
        assert len(batches) == workload.batches_of(partition, partitions)
        assert timestamps == list(range(1_000, 1_000 + len(timestamps)))
        total += len(timestamps)
    assert total == shape.records == 1003
    check_shape(shape, workload, partitions)


@pytest.mark.parametrize("age", [0.0, 172_800.0])
def test_the_newest_record_has_the_age_of_its_workload(age: float) -> None:
    partitions, now = 2, 1_800_000_000.0
    for workload in _SMALL:
        aged, newest, oldest = workload.aged(age), [], []
        for partition in range(partitions):
            data = b"".join(BatchMill(aged).batches(partition, partitions, aged.first_timestamp(partitions, now)))
            records = MemoryRecords(data)
            while (batch := records.next_batch()) is not None:
                timestamps = [record.timestamp for record in batch]
                newest.append(timestamps[-1])
                oldest.append(timestamps[0])

        end = (now - age) * 1000
        # Half of 1003 records on each side, a millisecond apart.
        assert end - 3 <= max(newest) < end, workload.name
        assert end - 502 == min(oldest), workload.name


def test_other_batches_than_asked_for_are_refused() -> None:
    shape = Shape()
    for partition in range(2):
        shape.add(memoryview(b"".join(BatchMill(_SMALL[4]).batches(partition, 2, 0))))

    with pytest.raises(BenchError, match="200b-single was loaded wrongly"):
        check_shape(shape, _SMALL[3], 2)


def test_full_lz4_batches_shrink_to_about_half() -> None:
    for workload in (WORKLOADS[0], WORKLOADS[2], filter_and_mask(compiled=True).workload):
        batches = list(BatchMill(workload.scaled(5_000)).batches(0, 1, 0))
        ratio = sum(map(len, batches)) / (5_000 * (workload.value_bytes + 14))
        assert 0.4 < ratio < 0.7, workload.name
