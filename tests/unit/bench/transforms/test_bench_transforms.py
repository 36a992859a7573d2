"""The transforms bench: what a copy must hold, and what follows from speeds."""

from __future__ import annotations

import pytest

from tools.bench.clusters.window import Window
from tools.bench.comparison.samples import Record
from tools.bench.transforms.cases import Case, Contender, Outcome, filter_and_mask, pass_through
from tools.bench.transforms.check import Check, all_kept, count_unlike, is_outcome, total
from tools.bench.transforms.results import Result, Results, goals
from tools.bench.workloads.payments import Payments

_FINE = Check(wrong_partitions=0, sampled=100, differing=0)


def _result(case: Case, contender: Contender, seconds: float, *, number: int = 1, check: Check = _FINE) -> Result:
    window = Window(records=600, start=1.0, end=1.0 + seconds, cpu_seconds=2.0, second_half_rate=600 / seconds)
    return Result(case.name, contender, number, 900, window, 1.0, seconds + 2, 3.0, check)


class TestWhatArrives:
    GIVEN = Record(5, b"pay-1", b'{"country":"DE","card":"4000123412345678","note":"x"}', (1, 1000), ())
    MASKED = GIVEN._replace(offset=2, value=b'{"country": "DE", "card": "************5678", "note": "x"}')

    def test_a_masked_payment_may_have_another_offset_and_other_blanks(self) -> None:
        assert is_outcome(self.GIVEN, self.MASKED, Outcome.MASKED)
        assert not is_outcome(self.GIVEN, self.GIVEN, Outcome.MASKED)
        assert is_outcome(self.GIVEN, self.GIVEN, Outcome.SAME)
        marked = self.GIVEN._replace(headers=(("masked", b"no"),))
        assert is_outcome(self.GIVEN, marked, Outcome.MARKED)
        assert not is_outcome(self.GIVEN, self.GIVEN, Outcome.MARKED)

    def test_anything_else_is_not_what_must_arrive(self) -> None:
        changes: tuple[dict[str, object], ...] = (
            {"value": b'{"card":"************5678","country":"DE","note":"x"}'},
            {"value": b'{"country":"DE","card":"************5679","note":"x"}'},
            {"value": b"not JSON"},
            {"value": None},
            {"key": None},
            {"timestamp": (1, 1001)},
            {"headers": (("a", b"1"),)},
        )
        for changed in changes:
            assert not is_outcome(self.GIVEN, self.MASKED._replace(**changed), Outcome.MASKED), changed  # type: ignore[arg-type]

    def test_missing_and_additional_records_count(self) -> None:
        made = Payments(1, 600)
        given = [Record(offset, *made.next(), (1, 1000), ()) for offset in range(3)]

        assert count_unlike(given, given, Outcome.SAME) == 0
        assert count_unlike(given, given[:2], Outcome.SAME) == 1
        assert count_unlike(given[:2], given, Outcome.SAME) == 1
        assert count_unlike(given, list(reversed(given)), Outcome.SAME) == 2

    def test_without_a_filter_every_record_must_arrive(self) -> None:
        kept = all_kept(pass_through().workload.scaled(21), 4)

        assert [len(kept[partition]) for partition in range(4)] == [6, 5, 5, 5]
        assert total(kept) == 21


class TestGoals:
    def test_the_equivalent_chain_decides_and_tuned_mm2_is_shown_in_addition(self) -> None:
        case = filter_and_mask(compiled=True)
        contenders = ((Contender.TRANSFORMED, 10.0), (Contender.MM2_DEFAULT, 16.0), (Contender.MM2_TUNED, 12.0))
        results = Results((case,), tuple(_result(case, contender, seconds) for contender, seconds in contenders))

        rate, equal = goals(results)

        assert (rate.text, rate.value, rate.reached) == ("filter and mask: times MM2 default", 1.6, True)
        assert (equal.value, equal.reached) == (1.0, True)
        assert results.times(case, Contender.MM2_TUNED, lambda each: each.rate) == pytest.approx(1.2)

    def test_medians_over_the_rounds_are_compared(self) -> None:
        case = pass_through()
        ours = [_result(case, Contender.TRANSFORMED, each, number=at) for at, each in enumerate((5.0, 10.0, 40.0))]

        rate, _ = goals(Results((case,), (*ours, _result(case, Contender.MM2_TUNED, 9.0))))

        assert (rate.value, rate.reached) == (0.9, False)

    def test_rates_count_records_of_the_source_not_those_that_are_left(self) -> None:
        result = _result(filter_and_mask(compiled=True), Contender.TRANSFORMED, 9.0)

        assert (result.rate, result.second_half_rate) == pytest.approx((100.0, 100.0))
        assert result.whole_rate == pytest.approx(900 / 11)

    def test_another_chain_and_nothing_measured_prove_nothing_and_a_wrong_copy_fails(self) -> None:
        other = filter_and_mask(compiled=False)
        measured = (_result(other, Contender.TRANSFORMED, 1.0), _result(other, Contender.MM2_DEFAULT, 16.0))
        assert goals(Results((other,), measured))[0].reached is None

        case = pass_through()
        wrong = Check(wrong_partitions=1, sampled=100, differing=0)
        copied = Results((case,), (_result(case, Contender.TRANSFORMED, 1.0, check=wrong),))
        assert [goal.reached for goal in goals(copied)] == [None, False]
        assert {goal.reached for goal in goals(Results((case,), ()))} == {None}
