"""The transforms bench: what it asks of each contender, what a copy must hold, and what follows from speeds."""

from __future__ import annotations

import pytest

from bench.clusters.window import Window
from bench.comparison.samples import Record
from bench.copiers.settings import CopySetup
from bench.transforms.cases import (
    FILTER_AND_MASK,
    PASS_THROUGH,
    Case,
    Contender,
    Outcome,
    filter_and_mask,
    pass_through,
    select_cases,
)
from bench.transforms.check import Check, all_kept, count_unlike, is_outcome, total
from bench.transforms.measure import SESSION_SETTINGS, Options, make_options, parse_arguments, session_settings
from bench.transforms.results import Result, Results, goals
from bench.workloads.payments import Payments
from mirror_lib.transform.settings import parse_transforms

_FINE = Check(wrong_partitions=0, sampled=100, differing=0)


def _setup(contender: Contender) -> CopySetup:
    return CopySetup(contender.copier, 1, "payments-1kb", "localhost:1", "localhost:2", 2)


def _options(*arguments: str, compiled: bool = True) -> Options:
    return make_options(parse_arguments(arguments), compiled=compiled)


def _result(case: Case, contender: Contender, seconds: float, *, number: int = 1, check: Check = _FINE) -> Result:
    window = Window(records=600, start=1.0, end=1.0 + seconds, cpu_seconds=2.0, second_half_rate=600 / seconds)
    return Result(case.name, contender, number, 900, window, 1.0, seconds + 2, 3.0, check)


class TestSettings:
    @pytest.mark.parametrize("case", [filter_and_mask(compiled=True), pass_through()])
    def test_our_transform_is_one_that_we_take(self, case: Case) -> None:
        transforms, problems = parse_transforms(case.ours)

        assert problems == ()
        assert len(transforms.transforms) == 1

    def test_each_contender_is_told_its_own_chain(self) -> None:
        case = filter_and_mask(compiled=True)

        def chosen(contender: Contender) -> set[str]:
            setup = _setup(contender)
            names = case.properties(contender, setup)
            return {name.removeprefix(f"{setup.flow}.") for name in names if "transform" in name}

        assert chosen(Contender.RAW) == set()
        assert chosen(Contender.TRANSFORMED) == set(case.ours)
        assert chosen(Contender.MM2_DEFAULT) == chosen(Contender.MM2_TUNED) == set(case.smt)

    def test_mm2_transforms_nothing_in_the_pass_through(self) -> None:
        case = pass_through()
        properties = case.properties(Contender.MM2_TUNED, _setup(Contender.MM2_TUNED))

        assert not [name for name in properties if "transforms" in name]
        assert case.outcome(Contender.TRANSFORMED) is Outcome.SAME

    def test_without_a_compiler_mm2_has_connects_own_chain_and_other_records_arrive(self) -> None:
        case = filter_and_mask(compiled=False)

        assert case.smt["transforms.live.type"] == "org.apache.kafka.connect.transforms.Filter"
        assert case.outcome(Contender.MM2_TUNED) is Outcome.MARKED
        assert case.outcome(Contender.TRANSFORMED) is Outcome.MASKED
        assert case.outcome(Contender.RAW) is Outcome.SAME


class TestWhatArrives:
    def _given(self, offset: int = 5) -> Record:
        value = b'{"country":"DE","card":"4000123412345678","note":"x"}'
        return Record(offset, b"pay-1", value, (1, 1000), ())

    def test_a_masked_payment_may_have_another_offset_and_other_blanks(self) -> None:
        given = self._given()
        found = given._replace(offset=2, value=b'{"country": "DE", "card": "************5678", "note": "x"}')

        assert is_outcome(given, found, Outcome.MASKED)
        assert not is_outcome(given, given, Outcome.MASKED)
        assert is_outcome(given, given, Outcome.SAME)

    @pytest.mark.parametrize(
        "changed",
        [
            {"value": b'{"card":"************5678","country":"DE","note":"x"}'},
            {"value": b'{"country":"DE","card":"************5679","note":"x"}'},
            {"value": b"not JSON"},
            {"value": None},
            {"key": None},
            {"timestamp": (1, 1001)},
            {"headers": (("a", b"1"),)},
        ],
    )
    def test_anything_else_is_not_what_must_arrive(self, changed: dict[str, object]) -> None:
        given = self._given()
        right = given._replace(value=b'{"country":"DE","card":"************5678","note":"x"}')

        assert is_outcome(given, right, Outcome.MASKED)
        assert not is_outcome(given, right._replace(**changed), Outcome.MASKED)  # type: ignore[arg-type]

    def test_connects_own_chain_adds_a_header(self) -> None:
        given = self._given()

        assert is_outcome(given, given._replace(headers=(("masked", b"no"),)), Outcome.MARKED)
        assert not is_outcome(given, given, Outcome.MARKED)

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
    def test_the_equivalent_chain_decides_and_tuned_mm2_is_told_beside_it(self) -> None:
        case = filter_and_mask(compiled=True)
        results = Results(
            (case,),
            (
                _result(case, Contender.TRANSFORMED, 10.0),
                _result(case, Contender.MM2_DEFAULT, 16.0),
                _result(case, Contender.MM2_TUNED, 12.0),
            ),
        )

        rate, equal = goals(results)

        assert (rate.text, rate.value, rate.reached) == ("filter and mask: times MM2 default", 1.6, True)
        assert (equal.value, equal.reached) == (1.0, True)
        assert results.times(case, Contender.MM2_TUNED, lambda each: each.rate) == pytest.approx(1.2)

    def test_medians_over_the_rounds_are_compared(self) -> None:
        case = pass_through()
        ours = [
            _result(case, Contender.TRANSFORMED, seconds, number=at) for at, seconds in enumerate((5.0, 10.0, 40.0))
        ]

        rate, _ = goals(Results((case,), (*ours, _result(case, Contender.MM2_TUNED, 9.0))))

        assert (rate.value, rate.reached) == (0.9, False)

    def test_rates_count_records_of_the_source_not_those_that_are_left(self) -> None:
        result = _result(filter_and_mask(compiled=True), Contender.TRANSFORMED, 9.0)

        assert (result.rate, result.second_half_rate) == pytest.approx((100.0, 100.0))
        assert result.whole_rate == pytest.approx(900 / 11)

    def test_another_chain_than_the_equivalent_one_proves_nothing(self) -> None:
        case = filter_and_mask(compiled=False)
        results = Results(
            (case,), (_result(case, Contender.TRANSFORMED, 1.0), _result(case, Contender.MM2_DEFAULT, 16.0))
        )

        assert goals(results)[0].reached is None

    def test_a_copy_that_does_not_hold_what_it_must_is_told(self) -> None:
        case = pass_through()
        wrong = Check(wrong_partitions=1, sampled=100, differing=0)
        results = Results((case,), (_result(case, Contender.TRANSFORMED, 1.0, check=wrong),))

        rate, equal = goals(results)

        assert (rate.reached, equal.reached) == (None, False)

    def test_nothing_measured_reaches_nothing(self) -> None:
        assert {goal.reached for goal in goals(Results((pass_through(),), ()))} == {None}


class TestArguments:
    def test_without_arguments_both_cases_are_measured_once_with_all_who_take_part(self) -> None:
        options = _options()

        assert [(each.name, each.workload.records) for each in options.cases] == [
            (FILTER_AND_MASK, 500_000),
            (PASS_THROUGH, 500_000),
        ]
        assert [options.contenders_of(each) for each in options.cases] == [each.contenders for each in options.cases]
        assert (options.rounds, options.warm_up) == (1, True)

    def test_quick_leaves_tuned_mm2_out_unless_it_is_named(self) -> None:
        case = _options("--quick").cases[0]

        assert Contender.MM2_TUNED not in _options("--quick").contenders_of(case)
        assert _options("--quick", "--copiers", "mm2-tuned").contenders_of(case) == (Contender.MM2_TUNED,)
        assert case.workload.records == 20_000
        assert _options("--quick", "--records", "9000").cases[0].workload.records == 9000

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (("--copiers", "connect"), "no such copier: connect. Known: mirror, mirror-raw"),
            (("--cases", "sort"), "no such case: sort. Known: filter-and-mask"),
        ],
    )
    def test_names_that_nobody_knows_are_refused(self, arguments: tuple[str, ...], told: str) -> None:
        with pytest.raises(ValueError, match=told):
            _options(*arguments)

    def test_one_case_can_be_asked_for(self) -> None:
        assert [each.name for each in _options("--cases", "pass-through").cases] == [PASS_THROUGH]
        assert [each.name for each in select_cases([], compiled=False)] == [FILTER_AND_MASK, PASS_THROUGH]

    def test_settings_of_spark_are_added_to_those_of_a_session_that_lives_long(self) -> None:
        assert session_settings([]) == SESSION_SETTINGS
        assert session_settings(["a.b=c=d"]) == {**SESSION_SETTINGS, "a.b": "c=d"}
        with pytest.raises(ValueError, match=r"--spark a\.b: write KEY=VALUE"):
            session_settings(["a.b"])
