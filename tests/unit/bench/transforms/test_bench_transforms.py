"""The transforms bench: what a copy must hold, and what follows from speeds."""

from __future__ import annotations

from tools.bench.comparison.samples import Record
from tools.bench.transforms.cases import Outcome, pass_through
from tools.bench.transforms.check import all_kept, count_unlike, is_outcome, total
from tools.bench.workloads.payments import Payments


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
