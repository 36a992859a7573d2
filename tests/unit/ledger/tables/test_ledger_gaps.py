"""Gaps in the ledger, on SQLite and PostgreSQL: found once, decided by somebody, and nothing of it forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.rows import GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import TopicPartition
from tests.support.ledger.rows import NOON, gap, partition_run

RETENTION = gap(
    first_offset=40,
    next_offset=60,
    first_time=NOON - timedelta(hours=1),
    last_time=NOON,
    topic_id="id-1",
    detail="records 40 to 59 were deleted.",
    run_id="r1",
)


class TestRecording:
    def test_the_same_gap_found_by_the_next_run_gives_no_second_row(self, ledger: Ledger) -> None:
        ledger.record_gap(RETENTION)

        again = ledger.record_gap(
            replace(RETENTION, id="g2", found_at=NOON + timedelta(hours=1), run_id="r2", last_time=NOON)
        )

        assert again == RETENTION
        assert ledger.gaps("a->b") == (RETENTION,)

    def test_a_gap_that_retention_makes_longer_stays_one_row_and_grows(self, ledger: Ledger) -> None:
        ledger.record_gap(RETENTION)
        later = NOON + timedelta(hours=1)

        grown = ledger.record_gap(
            replace(RETENTION, id="g2", next_offset=80, last_time=later, found_at=later, detail="40 to 79")
        )

        assert grown == replace(RETENTION, next_offset=80, last_time=later, detail="40 to 79")
        assert ledger.gaps("a->b") == (grown,)

    def test_a_truncated_source_that_grows_again_does_not_make_its_gap_smaller(self, ledger: Ledger) -> None:
        truncated = replace(RETENTION, cause="source-truncated", first_offset=30, next_offset=40)
        ledger.record_gap(truncated)

        seen = ledger.record_gap(replace(truncated, id="g2", first_offset=35))

        assert (seen.id, seen.first_offset, seen.next_offset) == ("g1", 30, 40)

    def test_another_gap_is_another_row(self, ledger: Ledger) -> None:
        others: list[dict[str, object]] = [
            {"flow": "a->c"},
            {"topic": "payments"},
            {"partition": 1},
            {"cause": "poison"},
            {"first_offset": 100, "next_offset": 101},
        ]
        rows = [replace(RETENTION, id=f"g{number}", **other) for number, other in enumerate(others, 2)]  # type: ignore[arg-type]

        for row in (RETENTION, *rows):
            ledger.record_gap(row)

        found = {row.id for flow in ("a->b", "a->c") for row in ledger.gaps(flow)}
        assert found == {"g1", "g2", "g3", "g4", "g5", "g6"}

    def test_a_gap_that_opens_again_after_it_was_decided_is_a_new_row(self, ledger: Ledger) -> None:
        ledger.record_gap(RETENTION)
        ledger.decide_gap("g1", GapState.ACCEPTED, by="alice")

        ledger.record_gap(replace(RETENTION, id="g2"))

        assert [row.id for row in ledger.open_gaps("a->b")] == ["g2"]


class TestListing:
    def test_gaps_are_listed_newest_first_up_to_the_limit(self, ledger: Ledger) -> None:
        assert ledger.gaps("a->b") == ledger.open_gaps("a->b") == ()
        assert ledger.stopped_partitions("a->b") == frozenset()

        for hour in range(3):
            found_at = NOON + timedelta(hours=hour)
            ledger.record_gap(replace(RETENTION, id=f"g{hour}", partition=hour, found_at=found_at))

        assert [row.id for row in ledger.gaps("a->b", limit=2)] == ["g2", "g1"]
        assert [row.id for row in ledger.gaps("a->b", limit=None)] == ["g2", "g1", "g0"]


class TestDeciding:
    def test_a_decision_says_who_when_and_why(self, ledger: Ledger) -> None:
        ledger.record_gap(RETENTION)
        before = datetime.now(UTC)

        decided = ledger.decide_gap("g1", GapState.ACCEPTED, by="alice@desk", note="test data")

        assert ledger.gaps("a->b") == (decided,)
        assert (decided.state, decided.decided_by, decided.note) == ("accepted", "alice@desk", "test data")
        assert decided.decided_at is not None
        assert before <= decided.decided_at <= datetime.now(UTC)
        assert ledger.open_gaps("a->b") == ()

    def test_an_earlier_decision_stays_readable(self, ledger: Ledger) -> None:
        ledger.record_gap(RETENTION)
        stopped = ledger.decide_gap("g1", GapState.STOPPED, by="alice", note="topic retired")
        assert stopped.decided_at is not None

        resumed = ledger.decide_gap("g1", GapState.OPEN, by="bob", note="needed after all")

        assert resumed.state == "open"
        when = f"{stopped.decided_at:%Y-%m-%dT%H:%M:%SZ}"
        assert resumed.note == f"needed after all; before: stopped by alice at {when} (topic retired)"

    def test_thousands_of_gaps_are_stored_counted_and_decided_at_once(self, ledger: Ledger) -> None:
        rows = [replace(RETENTION, id=f"g{number}", partition=number) for number in range(600)]
        ledger.add_gaps([*rows, replace(RETENTION, id="other", cause="poison")])
        ledger.decide_gap("g0", GapState.ACCEPTED, by="bob", note="meant")

        assert [each[1:3] for each in ledger.open_gaps_by_cause()] == [("poison", 1), ("retention-gap", 599)]
        ledger.decide_gaps([row.id for row in rows], GapState.RECOPIED, by="r1", note="again")

        assert [row.id for row in ledger.open_gaps("a->b")] == ["other"]
        found = {row.id: row for row in ledger.gaps_of_cause("a->b", "retention-gap", (GapState.RECOPIED,))}
        assert found.keys() == {row.id for row in rows}
        assert (found["g0"].note or "").startswith("again; before: accepted by bob at ")
        assert (found["g599"].decided_by, found["g599"].note) == ("r1", "again")

    def test_partitions_are_stopped_until_the_stop_is_taken_back(self, ledger: Ledger) -> None:
        ledger.record_gap(RETENTION)
        ledger.record_gap(replace(RETENTION, id="g2", partition=1))
        ledger.record_gap(replace(RETENTION, id="g3", flow="a->c", partition=2))

        for gap_id in ("g1", "g3"):
            ledger.decide_gap(gap_id, GapState.STOPPED, by="alice")
        ledger.decide_gap("g2", GapState.ACCEPTED, by="alice")
        assert ledger.stopped_partitions("a->b") == {TopicPartition("orders", 0)}

        ledger.decide_gap("g1", GapState.OPEN, by="alice")
        assert ledger.stopped_partitions("a->b") == frozenset()

    def test_an_unknown_gap_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="gap g9 does not exist") as caught:
            ledger.decide_gap("g9", GapState.ACCEPTED, by="alice")
        assert caught.value.action


class TestLastCopies:
    def test_the_newest_run_that_copied_records_counts(self, ledger: Ledger) -> None:
        for run in ("r1", "r2", "r3"):
            ledger.start_run(run_id=run, flow="a->b", trigger="cli")
        ledger.start_run(run_id="other", flow="a->c", trigger="cli")
        for run, partition, last_timestamp, topic in (
            ("r1", 0, 1_000, "orders"),
            ("r1", 1, 7_000, "orders"),
            ("r2", 0, 2_000, "orders"),
            ("r2", 0, 5_000, "payments"),
            ("r3", 0, None, "orders"),
            ("other", 0, 9_000, "orders"),
        ):
            ledger.save_partition_runs([partition_run(run, partition, topic=topic, last_timestamp=last_timestamp)])

        found = ledger.last_copies("a->b", ["orders"])

        assert {place: copy.last_timestamp for place, copy in found.items()} == {
            ("orders", 0): 2_000,
            ("orders", 1): 7_000,
        }
        assert found["orders", 0].stored_at == ledger.partition_runs("r2")[0].updated_at
        assert ledger.last_copies("a->b", []) == {}
