"""The workloads: exact batches, seeded, about half compressible."""

import pytest
from aiokafka.record.memory_records import MemoryRecords

from bench.errors import BenchError
from bench.transforms.cases import filter_and_mask
from bench.workloads.payload import Payloads
from bench.workloads.shape import Shape, check_shape, expected_shape
from bench.workloads.workload import EXTRA_WORKLOADS, WORKLOADS, BatchMill, Workload

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


def test_a_partial_batch_at_the_end_of_a_fetch_is_left_for_the_next() -> None:
    batches = list(BatchMill(_SMALL[4]).batches(0, 1, 0))
    data = bytes(batches[0] + batches[1][:-1])
    shape = Shape()

    assert shape.add(memoryview(data)) == 5
    assert (shape.batches, shape.records, shape.bytes) == (1, 5, len(batches[0]))
    assert Shape().add(memoryview(b"")) is None


def test_other_batches_than_asked_for_are_refused() -> None:
    shape = Shape()
    for partition in range(2):
        shape.add(memoryview(b"".join(BatchMill(_SMALL[4]).batches(partition, 2, 0))))

    with pytest.raises(BenchError, match="200b-single was loaded wrongly"):
        check_shape(shape, _SMALL[3], 2)


def test_expected_batches_count_the_short_ones_at_the_end_of_partitions() -> None:
    workload = WORKLOADS[4].scaled(23)

    codecs, sizes = expected_shape(workload, 2)

    # 12 records are 5 + 5 + 2, 11 are 5 + 5 + 1; lz4 has number 3.
    assert dict(sizes) == {5: 4, 2: 1, 1: 1}
    assert dict(codecs) == {3: 6}


def test_full_lz4_batches_shrink_to_about_half() -> None:
    for workload in (WORKLOADS[0], WORKLOADS[2], filter_and_mask(compiled=True).workload):
        batches = list(BatchMill(workload.scaled(5_000)).batches(0, 1, 0))
        ratio = sum(map(len, batches)) / (5_000 * (workload.value_bytes + 14))
        assert 0.4 < ratio < 0.7, workload.name


def test_the_same_seed_gives_the_same_payloads() -> None:
    first, again, other = Payloads(1, 200), Payloads(1, 200), Payloads(2, 200)

    made = [first.next() for _ in range(50)]

    assert made == [again.next() for _ in range(50)]
    assert made != [other.next() for _ in range(50)]
    assert len({value for _, value in made}) == 50
