"""What a plan says of new targets with the same offsets."""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mirror_lib.cli import ConsoleOutput
from mirror_lib.features.same_offsets.expected_holes import ExpectedHoles, records_among
from mirror_lib.features.same_offsets.shown import show
from mirror_lib.planning.model import RunPlan
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_plan
from tests.support.records.logs import log, spans
from tests.support.records.record_batches import SourceRecord


def told(most: int, holes: ExpectedHoles | None = None) -> list[str]:
    """The notes about a plan of four partitions: new ones from offsets 0, 700 and 5,000, and one that is copied."""
    new = [partition_plan(start=start, end=9_000) for start in (0, 700, 5_000)]
    plan = RunPlan(
        FlowId("A", "B"),
        bins=((*new, partition_plan(start=800, end=9_000, copy="kept-offsets-run")),),
        problems=(),
        idle=0,
    )
    text = StringIO()
    show(most, plan, holes, ConsoleOutput(Console(file=text, width=500, highlight=False)))
    return text.getvalue().splitlines()


def test_a_plan_says_how_far_new_targets_are_filled_and_which_are_refused() -> None:
    filled, refused = told(1_000)

    assert "new targets of 1 partition are filled up to the source's first offsets" in filled
    assert "700 records without content" in filled
    assert "1 partition will be refused: the source begins behind offset 1,000" in refused


def test_a_plan_says_how_many_holes_are_expected_and_how_long_they_take() -> None:
    holes = ExpectedHoles({TopicPartition("a", 0): 720_000, TopicPartition("a", 1): 100})

    assert holes.seconds == 7_200
    assert "about 720,100 offsets have no record at the source" in told(1_000, holes)[0]
    assert "a transaction each: about 2.0 hours" in told(1_000, holes)[0]


def test_many_partitions_with_few_holes_each_take_as_long_as_all_together() -> None:
    assert ExpectedHoles({TopicPartition("a", number): 1_000 for number in range(1_000)}).seconds == 500
    assert ExpectedHoles({}).seconds == 0


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 60))
def test_the_records_of_a_place_are_counted_against_the_offsets_that_they_take(gaps: list[int], offset: int) -> None:
    records, at = [], 0
    for gap in gaps:
        at += gap
        records.append(SourceRecord(at, value=b"x"))
        at += 1
    found = spans(log(records, [3] * 14))

    count, width = records_among(found, offset)

    begins = [each.first for each in found if each.first >= offset]
    assert count == sum(each.offset >= begins[0] for each in records) if begins else count == 0
    assert width == (at - begins[0] if begins else 0)
