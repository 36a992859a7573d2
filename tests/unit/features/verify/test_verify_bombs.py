"""A comparison of batches that become far larger than they are: no more is decoded than is needed for a judgement."""

from __future__ import annotations

from mirror_lib.features.verify.compare.compare import RangeComparer, whole_partition
from mirror_lib.features.verify.findings import RangeOutcome
from mirror_lib.features.verify.model import CheckRange
from mirror_lib.offsets.runs import OffsetRun, encode
from mirror_lib.records.header import Codec
from mirror_lib.records.spans import Span, read_spans
from mirror_lib.topology.names import TopicPartition
from tests.support.own_process import MEBIBYTE, measured
from tests.support.records.record_batches import SourceRecord, batch

_BATCHES = 70
_SIZE = 2 * MEBIBYTE


def spans(fill: int, records: int, size: int) -> list[Span]:
    """Batches of some records each, all in all `_BATCHES`."""
    data = b"".join(
        batch(
            [SourceRecord(offset, value=bytes([fill]) * size) for offset in range(first, first + records)],
            codec=Codec.ZSTD,
        )
        for first in range(0, _BATCHES, records)
    )
    return read_spans(memoryview(data), (), read_committed=True)[0]


def judged(source_records: int, target_records: int, fills: tuple[int, int], size: int) -> RangeOutcome:
    partition = TopicPartition("orders", 0)
    range_ = CheckRange(0, _BATCHES, 0, _BATCHES, _BATCHES, encode([OffsetRun(0, 0, _BATCHES)]))
    comparer = RangeComparer(whole_partition(partition, partition, range_), range_)
    comparer.feed_source(spans(fills[0], source_records, size), _BATCHES)
    comparer.feed_target(spans(fills[1], target_records, size), _BATCHES)
    comparer.walk()
    return comparer.outcome()


def test_other_records_on_the_target_are_judged_without_holding_all_that_could_explain_them() -> None:
    found = measured(judged, 1, 1, (0, 1), _SIZE)

    assert found.result.difference_count == _BATCHES
    assert found.grown < 40 * _SIZE


def test_batches_that_never_line_up_are_not_kept_after_they_were_compared() -> None:
    found = measured(judged, 7, 10, (0, 0), _SIZE)

    assert found.result.records == _BATCHES
    assert found.result.difference_count == 0
    assert found.grown < 64 * _SIZE
