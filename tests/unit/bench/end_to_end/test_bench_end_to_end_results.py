"""What follows from the ends of copies."""

from __future__ import annotations

from tools.bench.copiers.settings import Copier
from tools.bench.end_to_end.contest import Timing
from tools.bench.end_to_end.measure import CONNECT, SESSION
from tools.bench.end_to_end.results import Race, Result, goals


def _result(
    race: Race, copier: Copier, label: str, *, last: float, done: float | None = None, number: int = 1
) -> Result:
    timing = Timing(label, copier, 0.1, 1.0, last, last if done is None else done, 3.0, equal=True)
    return Result(race, "1kb-lz4", number, timing)


def test_a_warm_run_is_over_when_its_positions_are_committed_and_mm2_with_its_last_record() -> None:
    results = [
        _result(Race.WARM, Copier.MIRROR, SESSION, last=2.0, done=4.0),
        _result(Race.WARM, Copier.MIRROR, CONNECT, last=3.0, done=5.0),
        _result(Race.WARM, Copier.MM2_TUNED, "MM2 tuned", last=16.0),
    ]

    by_text = {goal.text: goal for goal in goals(results)}

    session, connect = (by_text[f"Warm ({way}), end to end: times MM2 tuned"] for way in (SESSION, CONNECT))
    assert (session.value, session.reached) == (4.0, True)
    assert (connect.value, connect.reached) == (3.2, False)


def test_a_cold_batch_must_end_before_mm2_in_every_round() -> None:
    def together(ours: float, number: int) -> list[Result]:
        race = Race.COLD_TOGETHER
        return [
            _result(race, Copier.MIRROR, "spark-submit", last=ours - 1, done=ours, number=number),
            _result(race, Copier.MM2_DEFAULT, "MM2 default", last=20.0, number=number),
        ]

    won, lost = together(15.0, 1), together(21.0, 2)

    assert [goal.reached for goal in goals(won) if "together" in goal.text] == [True]
    assert [goal.reached for goal in goals([*won, *lost]) if "together" in goal.text] == [False]
    assert {goal.reached for goal in goals([])} == {None}
