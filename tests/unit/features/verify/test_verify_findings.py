"""What the outcomes of ranges say together about a partition."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.features.verify.findings import PartitionVerdict, RangeOutcome, Stopped, Verdict
from mirror_lib.topology.names import TopicPartition

RANGE = RangeOutcome(source_first=40, source_next=90, target_first=7, target_next=57, complete=True)
EMPTY = PartitionVerdict(
    source=TopicPartition("orders", 0), target=TopicPartition("A.orders", 0), verdict=Verdict.EQUAL, outcomes=(RANGE,)
)


def test_compacted_records_are_those_of_either_side_and_of_both() -> None:
    outcomes = (replace(RANGE, compacted_source=1, compacted_target=20), replace(RANGE, gone_on_both=300))

    assert replace(EMPTY, outcomes=outcomes).compacted_records == 321


def test_only_a_partition_that_is_equal_without_any_record_is_empty() -> None:
    assert EMPTY.is_empty
    for stopped in Stopped:
        assert not replace(EMPTY, stopped=stopped).is_empty, stopped
    for found in ("records", "expired", "compacted_source", "compacted_target", "gone_on_both", "skipped", "pending"):
        assert not replace(EMPTY, outcomes=(replace(RANGE, **{found: 1}),)).is_empty, found
    assert not replace(EMPTY, verdict=Verdict.UNVERIFIABLE).is_empty
