"""Gaps: what is noted of a loss, and the position that carries out a decision about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.topics.position_format import OmittedRange, Position, PositionState
from mirror_lib.copy.gaps.gaps import gap_row, truncations
from mirror_lib.copy.gaps.resolutions import Decision, PresentCopy, Resolution, check_tail, decide
from mirror_lib.errors import (
    DirtyStartError,
    ReplicationError,
    RetentionGapError,
    SourceRecreatedError,
    SourceTruncatedError,
    TopicMissingError,
    Where,
)
from mirror_lib.ledger.rows import GapRow
from mirror_lib.ledger.tables.gaps import LastCopy
from mirror_lib.planning.model import PartitionFacts, PartitionProblem, SourceLoss
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_facts

FLOW = FlowId("A", "B")
SOURCE, OTHER, TARGET = TopicPartition("orders", 0), TopicPartition("more", 0), TopicPartition("A.orders", 0)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
COPIED_AT = NOON - timedelta(minutes=5)
#: 11:58:20, when the last copied record was written.
WRITTEN_AT = NOON - timedelta(seconds=100)


def facts(**changes: Any) -> PartitionFacts:
    return partition_facts(**({"log_start": 10, "position": 40, "position_topic_id": "id-1"} | changes))


def gap(cause: str, first: int = 0, end: int = 40, **changes: Any) -> GapRow:
    row = GapRow(
        id="g1",
        flow="A->B",
        topic="orders",
        partition=0,
        cause=cause,
        first_offset=first,
        next_offset=end,
        detail="lost.",
        found_at=NOON,
    )
    return replace(row, **changes)


def position(source: TopicPartition = SOURCE, **changes: Any) -> Position:
    fields = {"state": PositionState.CLOSED, "target_offset": 40, "run_id": "before"}
    return Position(source.topic, source.partition, 39, **fields | changes)


class TestNoting:
    def noted(self, error: ReplicationError, last: LastCopy | None) -> GapRow:
        problem = PartitionProblem(SOURCE, error, SourceLoss(40, 60, "id-1"))
        return gap_row(FLOW, problem, last, NOON, run_id="r1")

    def test_a_row_says_what_was_lost_and_how_it_was_found(self) -> None:
        row = self.noted(RetentionGapError("records 40 to 59 were deleted.", action="Decide."), None)

        assert (row.flow, row.topic, row.partition, row.cause) == ("A->B", "orders", 0, "retention-gap")
        assert (row.first_offset, row.next_offset, row.topic_id) == (40, 60, "id-1")
        assert (row.detail, row.run_id, row.found_at) == ("records 40 to 59 were deleted.", "r1", NOON)
        # The width of a range of offsets is no number of records.
        assert row.records is None
        assert (row.first_time, row.last_time, row.state) == (None, NOON, "open")

    def test_the_first_loss_was_after_the_last_copied_record_was_written_or_copied(self) -> None:
        written_ms = int(WRITTEN_AT.timestamp() * 1000)
        for kind, timestamp, first in (
            # What retention took was written after it.
            (RetentionGapError, written_ms, WRITTEN_AT),
            # A timestamp that cannot be true is not believed.
            (RetentionGapError, -1, COPIED_AT),
            (RetentionGapError, 2**62, COPIED_AT),
            # What was copied before was lost after it was copied.
            (SourceTruncatedError, written_ms, COPIED_AT),
            (SourceRecreatedError, written_ms, COPIED_AT),
        ):
            row = self.noted(kind("lost."), LastCopy(timestamp, COPIED_AT))

            assert row.first_time == first, (kind, timestamp)

    def test_a_problem_without_a_loss_is_no_gap(self) -> None:
        with pytest.raises(ValueError, match="lost no records"):
            gap_row(FLOW, PartitionProblem(SOURCE, TopicMissingError("gone.")), None, NOON, run_id="r1")

    def test_only_open_truncations_can_be_hidden_by_growth(self) -> None:
        rows = [
            gap("source-truncated", 30, 40),
            gap("source-truncated", 5, 7, topic="decided", state="accepted"),
            gap("retention-gap", 30, 40, topic="expired"),
        ]

        assert truncations(rows) == {(SOURCE, 40): 30}

    def test_each_position_has_the_lowest_end_of_its_truncations(self) -> None:
        for turn in (1, -1):
            rows = [
                gap("source-truncated", 30, 40),
                gap("source-truncated", 25, 40),
                gap("source-truncated", 20, 50),
            ][::turn]

            assert truncations(rows) == {(SOURCE, 40): 25, (SOURCE, 50): 20}, turn


class TestDeciding:
    def test_accepting_goes_on_behind_what_is_lost(self) -> None:
        for fact, cause, start in (
            (facts(log_start=60), "retention-gap", 60),
            (facts(log_end=30), "source-truncated", 30),
            (facts(truncated_to=25, log_end=30), "source-truncated", 25),
            (facts(position_leader_epoch=2, leader_epoch_end=33), "source-truncated", 33),
            # Retention went beyond the cut.
            (facts(position_leader_epoch=2, leader_epoch_end=5), "source-truncated", 10),
            # Another log under the same name, on a cluster without topic ids.
            (facts(position_leader_epoch=2, leader_epoch_end=-1), "source-truncated", 10),
            (facts(position_topic_id="id-0"), "source-recreated", 10),
        ):
            found = decide(Decision.ACCEPT, FLOW, fact, [gap(cause)], PresentCopy(target_end=77, run_id="d1", claim=4))

            assert found == Position(
                topic="orders",
                partition=0,
                offset=start - 1,
                target_offset=77,
                state=PositionState.CLOSED,
                run_id="d1",
                topic_id="id-1",
                claim=4,
                target_topic="A.orders",
                # Offsets ascend on if records have expired; else the same offset means another record.
                copy=None if cause == "retention-gap" else "d1",
            ), fact

    @given(
        st.integers(0, 50),
        st.integers(0, 50),
        st.integers(0, 100),
        st.none() | st.integers(-1, 100),
        st.none() | st.integers(0, 100),
    )
    def test_the_next_run_finds_nothing_lost_after_an_accepted_gap(
        self, log_start: int, length: int, stored: int, epoch_end: int | None, truncated_to: int | None
    ) -> None:
        fact = facts(
            log_start=log_start,
            log_end=log_start + length,
            position=stored,
            leader_epoch_end=epoch_end,
            truncated_to=truncated_to,
        )
        causes = [gap("retention-gap"), gap("source-truncated")]

        found = decide(Decision.ACCEPT, FLOW, fact, causes, PresentCopy(target_end=77, run_id="d1"))

        if found is not None:
            # Without an epoch in the new position nobody asks for its end.
            assert found.leader_epoch is None
            after = replace(fact, position=found.offset + 1, leader_epoch_end=None, truncated_to=None)
            assert decide(Decision.ACCEPT, FLOW, after, causes, PresentCopy(target_end=77, run_id="d2")) is None
            assert log_start <= found.offset + 1 <= log_start + length

    def test_recopying_begins_at_the_start_of_the_source(self, subtests: pytest.Subtests) -> None:
        for fact in (facts(), facts(log_start=60), facts(position_topic_id="id-0", log_start=0)):
            with subtests.test(fact=fact):
                found = decide(
                    Decision.RECOPY, FLOW, fact, [gap("source-recreated")], PresentCopy(target_end=77, run_id="d1")
                )

                assert (found.offset + 1, found.target_offset) == (fact.log_start, 77)

    def test_no_position_moves_where_nothing_is_to_be_passed(self) -> None:
        for decision, fact, cause in (
            (Decision.STOP, facts(log_start=60), "retention-gap"),
            (Decision.RESUME, facts(log_start=60), "retention-gap"),
            # A gap that is none any more.
            (Decision.ACCEPT, facts(), "retention-gap"),
            # Records that were left out.
            (Decision.ACCEPT, facts(log_start=60), "poison"),
        ):
            assert decide(decision, FLOW, fact, [gap(cause)], PresentCopy(target_end=77, run_id="d1")) is None, (
                decision,
                cause,
            )

    def test_a_loss_that_nobody_has_seen_is_not_accepted_with_another(self) -> None:
        with pytest.raises(ReplicationError, match="created again") as caught:
            decide(
                Decision.ACCEPT,
                FLOW,
                facts(position_topic_id="id-0"),
                [gap("retention-gap")],
                PresentCopy(target_end=77, run_id="d1"),
            )
        assert caught.value.action


class TestDecidingAboutAnInterruptedCopy:
    SKIPPED = (OmittedRange(20, 21, 1, "record-refused"),)

    def decided(self, fact: PartitionFacts, cause: str, **changes: Any) -> Position:
        before = position(state=PositionState.OPEN, producer_id=4, epoch=2, skipped=self.SKIPPED, **changes)
        return decide(
            Decision.ACCEPT, FLOW, fact, [gap(cause)], PresentCopy(target_end=40, run_id="r2", before=before, claim=6)
        )

    def test_the_position_stays_open_so_that_its_writer_is_fenced(self) -> None:
        after = self.decided(facts(log_start=60), "retention-gap")

        assert (after.offset, after.target_offset, after.claim) == (59, 40, 6)
        assert (after.state, after.producer_id, after.epoch) == (PositionState.OPEN, 4, 2)
        assert after.skipped == self.SKIPPED

    def test_what_was_left_out_of_another_history_is_forgotten(self) -> None:
        assert self.decided(facts(log_end=30), "source-truncated").skipped == ()

    def test_in_a_merge_it_is_closed_since_nobody_could_take_it_over(self) -> None:
        before = position(state=PositionState.OPEN, producer_id=4, epoch=2)
        causes = [gap("retention-gap")]

        after = decide(
            Decision.RECOPY,
            FLOW,
            facts(),
            causes,
            PresentCopy(target_end=40, run_id="r2", before=before, claim=6, merged=True),
        )

        assert after.state is PositionState.CLOSED


class TestTheTailOfTheTarget:
    def check(self, decision: Decision, *known: Position, target_end: int = 40) -> None:
        by_source = {each.source: each for each in known}
        check_tail(decision, facts(), by_source, target_end, Where(flow="A->B"))

    def test_a_target_that_ends_where_the_position_says_is_known(self, subtests: pytest.Subtests) -> None:
        for decision in (Decision.ACCEPT, Decision.RECOPY):
            with subtests.test(decision=decision):
                self.check(decision, position())
                self.check(decision, position(state=PositionState.OPEN))

    def test_any_other_end_may_hide_records_that_were_copied(self, subtests: pytest.Subtests) -> None:
        for target_end in (39, 41):
            for state in list(PositionState):
                with subtests.test(target_end=target_end, state=state):
                    with pytest.raises(DirtyStartError) as caught:
                        self.check(Decision.ACCEPT, position(state=state), target_end=target_end)
                    assert "mirror gaps recopy" in caught.value.action

                    self.check(Decision.RECOPY, position(state=state), target_end=target_end)

    def test_mm2_stores_no_target_offset_and_promises_no_exactness(self) -> None:
        self.check(Decision.ACCEPT, position(state=None, target_offset=None), target_end=500)

    def test_in_a_merge_the_others_must_have_ended_well(self, subtests: pytest.Subtests) -> None:
        for decision in (Decision.ACCEPT, Decision.RECOPY):
            with subtests.test(decision=decision):
                self.check(decision, position(), position(OTHER, target_offset=55), target_end=55)
                with pytest.raises(DirtyStartError, match="interrupted while it copied more-0"):
                    self.check(decision, position(), position(OTHER, state=PositionState.OPEN))

    def test_nothing_is_known_of_a_take_over_from_mirror_maker_that_was_interrupted(self) -> None:
        interrupted = position(state=PositionState.OPEN, target_offset=None)

        with pytest.raises(DirtyStartError, match="from MirrorMaker 2"):
            self.check(Decision.ACCEPT, interrupted, target_end=50)
        self.check(Decision.RECOPY, interrupted, target_end=50)


class TestTelling:
    GAPS = (gap("retention-gap"),)

    def test_a_resolution_reads_as_a_sentence(self) -> None:
        for resolution, expected in (
            (
                Resolution(Decision.ACCEPT, SOURCE, self.GAPS, position(), position(target_offset=77), 100),
                "orders-0: copying continues at source offset 40 instead of 40, lag 60 offsets; "
                "its target offset is 77",
            ),
            (
                Resolution(Decision.ACCEPT, SOURCE, self.GAPS, position()),
                "orders-0: the position is unchanged; the gap is accepted in the ledger",
            ),
            (Resolution(Decision.STOP, SOURCE, self.GAPS), "orders-0: is no longer replicated"),
            (
                Resolution(Decision.RESUME, SOURCE, self.GAPS),
                "orders-0: is replicated again; the gap is open until it has a new resolution",
            ),
            (
                Resolution(Decision.ACCEPT, SOURCE, self.GAPS, error=TopicMissingError("it is gone.")),
                "orders-0: cannot accept: it is gone.",
            ),
        ):
            assert str(resolution) == expected, expected
