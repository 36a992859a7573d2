"""Whether the ledger has the history of a position in Kafka."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.identity.histories import History, LedgerState, history_of
from mirror_lib.identity.ledger_positions import LedgerPositions, Past
from mirror_lib.identity.targets import CopiedTo
from mirror_lib.ledger.offset_rows import KnownPosition
from mirror_lib.topology.names import TopicPartition

ORDERS = TopicPartition("orders", 0)


class Runs:
    """A ledger that has started these runs."""

    def __init__(self, *known: str) -> None:
        self._known = known

    def knows_run(self, run_id: str) -> bool:
        return run_id in self._known


def in_kafka(offset: int = 99, *, claim: int | None = 5, **changes: Any) -> Position:
    values = {"state": PositionState.CLOSED, "run_id": "run-5", "copy": "first", **changes}
    return Position("orders", 0, offset, target_offset=offset + 1, claim=claim, **values)


def in_ledger(offset: int = 99, *, claim: int | None = 5, state: str = "closed", **changes: Any) -> KnownPosition:
    values = {"run_id": "run-5", "copy": "first", **changes}
    return KnownPosition(offset, offset + 1, state, claim=claim, **values)


BEHIND, OTHER_COPY, AHEAD, CURRENT = LedgerState.BEHIND, LedgerState.OTHER_COPY, LedgerState.AHEAD, LedgerState.CURRENT
OPEN = PositionState.OPEN


@pytest.mark.parametrize(
    ("position", "row", "expected"),
    [
        pytest.param(in_kafka(), in_ledger(), History(CURRENT), id="both are the same"),
        pytest.param(in_kafka(), in_ledger(49, claim=4), History(BEHIND, 50, 100), id="a backup of the same copy"),
        pytest.param(in_kafka(), None, History(BEHIND, 0, 100), id="an empty ledger"),
        pytest.param(
            in_kafka(), in_ledger(299, claim=3, copy="second"), History(OTHER_COPY, 0, 100), id="from before a decision"
        ),
        pytest.param(
            in_kafka(), in_ledger(299, claim=5), History(OTHER_COPY, 0, 100), id="the copy went back with one number"
        ),
        pytest.param(in_kafka(), in_ledger(299, claim=9), History(AHEAD, 100, 100), id="the target is from yesterday"),
        pytest.param(in_kafka(), in_ledger(49, claim=5), History(BEHIND, 50, 100), id="the commit is lost"),
    ],
)
def test_given_a_position_that_the_ledger_did_not_lead_to_then_what_it_lacks_is_named(
    position: Position, row: KnownPosition | None, expected: History
) -> None:
    assert history_of(position, row, Runs("run-4")) == expected
    assert expected.is_sound == (expected.state is CURRENT)


@pytest.mark.parametrize(
    ("position", "row"),
    [
        pytest.param(in_kafka(state=OPEN), in_ledger(149), id="after the commit in the ledger"),
        pytest.param(in_kafka(state=OPEN), in_ledger(state="open"), id="while it copies"),
        pytest.param(in_kafka(), in_ledger(claim=6, state="open", run_id="run-6"), id="after the claim in the ledger"),
        pytest.param(
            in_kafka(149, state=OPEN), in_ledger(claim=6, state="open"), id="while executors of the run before go on"
        ),
        pytest.param(in_kafka(claim=6), in_ledger(), id="a backfill has marked the position"),
    ],
)
def test_given_a_run_that_ended_at_any_point_then_the_ledger_lacks_nothing(
    position: Position, row: KnownPosition
) -> None:
    assert history_of(position, row, Runs()).is_sound


def test_given_a_position_of_mirror_maker_then_it_has_continued_the_copy_that_the_ledger_knows() -> None:
    position = in_kafka(149, claim=None, copy=None, run_id=None, state=None)
    known = LedgerPositions({ORDERS: in_ledger()}, Runs())

    assert Past.of(position, known, ORDERS)[:2] == ("first", History(CURRENT))
    # It went back: its offsets mean other records, of another copy each time.
    back = Past.of(replace(position, offset=49), known, ORDERS).copy
    later = LedgerPositions({ORDERS: in_ledger(run_id="run-6", copy=back)}, Runs())
    again = Past.of(replace(position, offset=49), later, ORDERS).copy
    assert len({back, again, "first", None}) == 4


@pytest.mark.parametrize(
    ("row", "runs", "sound"),
    [
        (in_ledger(claim=None, copy=None), Runs(), True),
        # Stored by the run, which earlier versions noted after Kafka.
        (in_ledger(49, claim=None, copy=None, run_id="run-4"), Runs("run-5"), True),
        (None, Runs("run-5"), True),
        (in_ledger(49, claim=None, copy=None, run_id="run-4"), Runs("run-4"), False),
        (None, Runs("run-4"), False),
    ],
)
def test_given_rows_of_an_earlier_version_then_the_ledger_has_to_know_the_run(
    row: KnownPosition | None, runs: Runs, *, sound: bool
) -> None:
    assert history_of(in_kafka(copy=None), row, runs).is_sound is sound


def test_given_a_restored_position_then_the_ledger_says_how_much_the_target_held() -> None:
    position, known = in_kafka(), LedgerPositions({ORDERS: in_ledger(299, claim=9)}, Runs())
    there = CopiedTo("A.orders", "id-1", None, 100)

    assert Past.of(position, known, ORDERS).copied_to(there) == there._replace(log_end=300)
    same = LedgerPositions({ORDERS: in_ledger()}, Runs())
    assert Past.of(position, same, ORDERS).copied_to(there) == there


def test_given_no_ledger_or_a_position_that_an_operator_has_set_then_nothing_is_compared() -> None:
    known = LedgerPositions({ORDERS: in_ledger(49, claim=4)}, Runs())

    assert Past.of(in_kafka(), None, ORDERS).history.is_sound
    assert Past.of(in_kafka(), known, ORDERS, altered=True).history.is_sound
    assert not Past.of(in_kafka(), known, ORDERS).history.is_sound
