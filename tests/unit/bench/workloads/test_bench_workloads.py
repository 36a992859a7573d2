"""The workloads: exact batches, about half compressible."""

import pytest
from aiokafka.record.memory_records import MemoryRecords

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


def test_full_lz4_batches_shrink_to_about_half() -> None:
    for workload in (WORKLOADS[0], WORKLOADS[2], filter_and_mask(compiled=True).workload):
        batches = list(BatchMill(workload.scaled(5_000)).batches(0, 1, 0))
        ratio = sum(map(len, batches)) / (5_000 * (workload.value_bytes + 14))
        assert 0.4 < ratio < 0.7, workload.name
