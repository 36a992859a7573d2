"""What the outcomes of ranges say together about a partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_lib.features.verify.findings import PartitionVerdict, RangeOutcome, Stopped, Verdict
from mirror_lib.topology.names import TopicPartition

RANGE = RangeOutcome(source_first=40, source_next=90, target_first=7, target_next=57, complete=True)
EMPTY = PartitionVerdict(
    source=TopicPartition("orders", 0), target=TopicPartition("A.orders", 0), verdict=Verdict.EQUAL, outcomes=(RANGE,)
)


def test_compacted_records_are_those_of_either_side_and_of_both() -> None:
    outcomes = (replace(RANGE, compacted_source=1, compacted_target=20), replace(RANGE, gone_on_both=300))

    assert replace(EMPTY, outcomes=outcomes).compacted_records == 321


def test_a_partition_without_any_record_is_empty() -> None:
    assert EMPTY.is_empty


@pytest.mark.parametrize("stopped", list(Stopped))
def test_a_partition_whose_comparison_was_stopped_is_not_known_to_be_empty(stopped: Stopped) -> None:
    assert not replace(EMPTY, stopped=stopped).is_empty


@pytest.mark.parametrize(
    "found", ["records", "expired", "compacted_source", "compacted_target", "gone_on_both", "skipped", "pending"]
)
def test_a_partition_of_which_something_is_known_is_not_empty(found: str) -> None:
    assert not replace(EMPTY, outcomes=(replace(RANGE, **{found: 1}),)).is_empty


def test_a_partition_that_is_not_equal_is_not_empty() -> None:
    assert not replace(EMPTY, verdict=Verdict.UNVERIFIABLE).is_empty
