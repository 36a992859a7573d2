"""Where transforms have sent records, as the ledger keeps it, on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from mirror_lib.features.transforms.tables import FULL_OFFSETS, RoutedRangeRow, RoutedRanges
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import TopicPartition
from tests.support.ledger.rows import partition_run

FLOW = "A->B"


def row(source: tuple[int, int], target: tuple[int, int], to: str = "payments.de", **more: Any) -> RoutedRangeRow:
    """What partition 0 of the topic `payments` sent to partition 0 of another topic."""
    settings: dict[str, Any] = {
        "flow": FLOW,
        "target_topic": to,
        "target_partition": 0,
        "topic": "payments",
        "partition": 0,
        "own": False,
        "source_first": source[0],
        "source_next": source[1],
        "target_first": target[0],
        "target_next": target[1],
        "records": target[1] - target[0],
        "run_id": "r1",
    }
    return RoutedRangeRow(**{**settings, **more})


def own(source: tuple[int, int], **more: Any) -> RoutedRangeRow:
    """What stayed of it, which is nothing."""
    return row(source, (0, 0), "A.payments", own=True, **more)


def elsewhere(ledger: Ledger, to: str = "payments.de") -> list[tuple[int, int, tuple[int, int], tuple[int, int]]]:
    return [
        (row.range_number, row.partition, (row.source_first, row.source_next), (row.target_first, row.target_next))
        for row in RoutedRanges(ledger).of_flow(FLOW)
        if row.target_topic == to
    ]


def test_a_run_that_follows_another_joins_its_stretch(ledger: Ledger) -> None:
    RoutedRanges(ledger).append([own((0, 100)), row((0, 100), (0, 40))])
    RoutedRanges(ledger).append([own((100, 200), run_id="r2"), row((100, 200), (40, 60), run_id="r2")])

    assert elsewhere(ledger) == [(0, 0, (0, 200), (0, 60))]
    assert elsewhere(ledger, "A.payments") == [(0, 0, (0, 200), (0, 0))]
    (joined,) = (each for each in RoutedRanges(ledger).of_flow(FLOW) if not each.own)
    assert (joined.records, joined.run_id) == (60, "r2")


def test_a_stretch_ends_where_it_is_not_known_what_was_sent_in_between_or_where_it_is_large(ledger: Ledger) -> None:
    full = FULL_OFFSETS
    for number, (runs, stretches) in enumerate(
        (
            # A run that sent nothing there does not end it.
            (
                [((0, 100), (0, 40)), ((100, 200), None), ((200, 300), (40, 41))],
                [(0, 0, (0, 300), (0, 41))],
            ),
            (
                [((0, 100), (0, 40)), ((200, 300), (40, 41))],
                [(0, 0, (0, 100), (0, 40)), (1, 0, (200, 300), (40, 41))],
            ),
            (
                [((0, 100), (0, full)), ((100, 200), (full, full + 1))],
                [(0, 0, (0, 100), (0, full)), (1, 0, (100, 200), (full, full + 1))],
            ),
        )
    ):
        topic = {"topic": f"payments{number}"}
        to = f"payments{number}.de"
        for source, target in runs:
            sent = [] if target is None else [row(source, target, to, **topic)]
            RoutedRanges(ledger).append([own(source, **topic), *sent])
        assert elsewhere(ledger, to) == stretches, runs


def test_source_partitions_that_send_records_there_in_one_run_are_in_one_stretch(ledger: Ledger) -> None:
    first = [own((0, 100)), own((0, 50), partition=1), row((0, 100), (0, 90)), row((0, 50), (5, 120), partition=1)]
    RoutedRanges(ledger).append(first)
    RoutedRanges(ledger).append([own((50, 60), partition=1), row((50, 60), (120, 121), partition=1)])

    assert elsewhere(ledger) == [(0, 0, (0, 100), (0, 90)), (0, 1, (0, 60), (5, 121))]


def test_the_same_rows_once_more_change_nothing(ledger: Ledger) -> None:
    rows = [own((0, 100)), row((0, 100), (0, 40))]
    RoutedRanges(ledger).append(rows)
    before = RoutedRanges(ledger).of_flow(FLOW)

    RoutedRanges(ledger).append(rows)

    assert RoutedRanges(ledger).of_flow(FLOW) == before


def test_what_is_copied_again_from_an_earlier_offset_ends_what_is_known_before_that(ledger: Ledger) -> None:
    RoutedRanges(ledger).append([own((0, 100)), row((0, 100), (0, 40))])
    RoutedRanges(ledger).append([own((60, 150), run_id="r2"), row((60, 150), (30, 70), run_id="r2")])

    assert elsewhere(ledger) == [(0, 0, (0, 60), (0, 40)), (1, 0, (60, 150), (30, 70))]
    assert [each.source_next for each in RoutedRanges(ledger).of_flow(FLOW) if each.own] == [60, 150]


def test_what_is_copied_again_from_the_beginning_replaces_all_that_is_known(ledger: Ledger) -> None:
    for first in (0, 100):
        RoutedRanges(ledger).append(
            [own((first, first + 100)), row((first, first + 100), (first, first + FULL_OFFSETS))]
        )
    assert len(elsewhere(ledger)) == 2

    RoutedRanges(ledger).append([own((0, 50), run_id="r2"), row((0, 50), (300_000, 300_010), run_id="r2")])

    assert [each[2:] for each in elsewhere(ledger)] == [((0, 50), (300_000, 300_010))]


def test_every_flow_has_its_own_rows_and_knows_who_else_sends_records_there(ledger: Ledger) -> None:
    RoutedRanges(ledger).append([own((0, 100)), row((0, 100), (0, 40))])
    other = {"flow": "C->B"}
    RoutedRanges(ledger).append([own((0, 9), **other), row((0, 9), (40, 44), **other)])

    assert len(RoutedRanges(ledger).of_flow(FLOW)) == 2
    assert RoutedRanges(ledger).of_others(FLOW) == {("C->B", TopicPartition("payments.de", 0))}


def test_a_flow_that_runs_often_adds_no_rows_without_end(ledger: Ledger) -> None:
    for first in range(0, 400, 10):
        RoutedRanges(ledger).append([own((first, first + 10)), row((first, first + 10), (first, first + 5))])
        assert len(RoutedRanges(ledger).of_flow(FLOW)) == 2


def interrupted(ledger: Ledger, run_id: str, start: int, state: str = "copying") -> None:
    """A run that had begun with the partition and said no more."""
    ledger.start_run(run_id=run_id, flow=FLOW, trigger="cli")
    offsets = {"start_offset": start, "end_offset": 900, "source_next": start, "target_next": 0}
    planned = partition_run(run_id, topic="payments", target_topic="A.payments", state=state, **offsets)
    ledger.save_partition_runs([planned])


@pytest.mark.parametrize("before", [0, 100])
def test_what_interrupted_runs_have_committed_belongs_to_the_run_that_goes_on_behind_it(
    ledger: Ledger, before: int
) -> None:
    interrupted(ledger, "r0", 0, "done")
    if before:
        RoutedRanges(ledger).append([own((0, before), run_id="r0"), row((0, before), (0, 40), run_id="r0")])
    interrupted(ledger, "r1", before)
    interrupted(ledger, "r2", before + 30)

    resumed = [own((before + 50, 300), run_id="r3"), row((before + 50, 300), (40, 90), run_id="r3")]
    RoutedRanges(ledger).append(resumed, resumed=[TopicPartition("payments", 0)])

    (known,) = elsewhere(ledger)
    # It joins what was known before.
    assert known[2] == (0, 300)


def test_of_a_partition_that_was_not_interrupted_nothing_is_taken_for_known(ledger: Ledger) -> None:
    interrupted(ledger, "r1", 0)

    RoutedRanges(ledger).append([own((50, 300), run_id="r3"), row((50, 300), (40, 90), run_id="r3")])

    assert [each[2] for each in elsewhere(ledger)] == [(50, 300)]
