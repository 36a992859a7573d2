"""The workloads: exact batches, seeded, about half compressible."""

import pytest
from aiokafka.record.memory_records import MemoryRecords

from bench.errors import BenchError
from bench.workloads.payload import Payloads
from bench.workloads.shape import Shape, check_shape, expected_shape
from bench.workloads.workload import EXTRA_WORKLOADS, QUICK, WORKLOADS, BatchKind, BatchMill, Codec, Workload, select

_SMALL = tuple(workload.scaled(5003) for workload in (*WORKLOADS, *EXTRA_WORKLOADS))


def _by_name(workload: Workload) -> str:
    return workload.name


def test_the_five_workloads_are_those_of_the_design() -> None:
    facts = [(each.records, each.value_bytes, each.codec, each.kind) for each in WORKLOADS]

    assert facts == [
        (1_000_000, 1000, Codec.LZ4, BatchKind.FULL),
        (1_000_000, 1000, Codec.NONE, BatchKind.FULL),
        (3_000_000, 100, Codec.LZ4, BatchKind.FULL),
        (200_000, 200, Codec.NONE, BatchKind.SMALL),
        (500_000, 200, Codec.LZ4, BatchKind.SMALL),
    ]
    assert [each.records_per_batch for each in WORKLOADS if each.kind is BatchKind.SMALL] == [1, 5]
    assert WORKLOADS[0].title == "1 M x 1 kB, lz4, full batches"


@pytest.mark.parametrize("workload", _SMALL, ids=_by_name)
def test_every_record_is_made_once_and_can_be_read_by_aiokafka(workload: Workload) -> None:
    partitions = 3
    total, mill = 0, BatchMill(workload)
    for partition in range(partitions):
        batches = list(mill.batches(partition, partitions, 1_000))
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
    assert total == 5003


@pytest.mark.parametrize("workload", _SMALL, ids=_by_name)
def test_the_log_of_a_workload_has_its_shape(workload: Workload) -> None:
    shape, mill = Shape(), BatchMill(workload)
    for partition in range(2):
        data = b"".join(mill.batches(partition, 2, 0))
        shape.add(memoryview(data))

    check_shape(shape, workload, 2)
    assert shape.records == 5003


@pytest.mark.parametrize("workload", _SMALL, ids=_by_name)
@pytest.mark.parametrize("age", [0.0, 172_800.0])
def test_the_newest_record_has_the_age_of_its_workload(workload: Workload, age: float) -> None:
    partitions, now = 2, 1_800_000_000.0
    aged, newest, oldest = workload.aged(age), [], []
    for partition in range(partitions):
        data = b"".join(BatchMill(aged).batches(partition, partitions, aged.first_timestamp(partitions, now)))
        records = MemoryRecords(data)
        while (batch := records.next_batch()) is not None:
            timestamps = [record.timestamp for record in batch]
            newest.append(timestamps[-1])
            oldest.append(timestamps[0])

    end = (now - age) * 1000
    # Half of 5003 records on each side, a millisecond apart.
    assert end - 3 <= max(newest) < end
    assert end - 2_502 == min(oldest)


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
    for workload in (WORKLOADS[0], WORKLOADS[2]):
        batches = list(BatchMill(workload.scaled(20_000)).batches(0, 1, 0))
        ratio = sum(map(len, batches)) / (20_000 * (workload.value_bytes + 14))
        assert 0.4 < ratio < 0.7


def test_the_same_seed_gives_the_same_payloads() -> None:
    first, again, other = Payloads(1, 200), Payloads(1, 200), Payloads(2, 200)

    made = [first.next() for _ in range(50)]

    assert made == [again.next() for _ in range(50)]
    assert made != [other.next() for _ in range(50)]
    assert len({value for _, value in made}) == 50


def test_workloads_are_chosen_by_name_and_order() -> None:
    assert select(None, quick=False) == WORKLOADS
    assert select("", quick=True) == QUICK
    assert [each.name for each in select("200b-five, 1kb-none", quick=False)] == ["200b-five", "1kb-none"]
    assert select("1kb-lz4-16k", quick=False) == EXTRA_WORKLOADS
    assert select("200b-five", quick=True)[0].records == 50_000


def test_an_unknown_workload_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no such workload: 1kb-gzip. Known: .*1kb-lz4"):
        select("1kb-gzip", quick=False)


def test_quick_has_one_workload_of_each_kind() -> None:
    assert [each.kind for each in QUICK] == [BatchKind.FULL, BatchKind.SMALL]
    assert [each.title.split(",")[0] for each in QUICK] == ["100 k x 1 kB", "50 k x 200 B"]
