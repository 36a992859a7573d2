"""The invariants of the model: each holds for a good copy, and fails for the fault that it is for."""

import pytest

from model.expected import Copy, History, ViolationError, check_group, check_order, check_range, deletions, missing
from model.world import Seen

PLACE = ("a", 0)


def seen(number: int, offset: int, *, key: str = "", deletes: bool = False) -> Seen:
    return Seen(offset, f"id-{number}", f"digest-{number}", (key or f"key-{number}").encode(), deletes)


def history(count: int, *, compacted: bool = False) -> History:
    made = History(compacted=compacted)
    made.add([seen(number, number) for number in range(count)], count)
    return made


def copy_of(*numbers: int) -> Copy:
    return Copy("t", [seen(number, offset) for offset, number in enumerate(numbers)], read_to=len(numbers))


def order(history: History, copy: Copy, *, committed: bool = False) -> str:
    try:
        check_order(PLACE, history, copy, {"stranger"}, committed=committed)
    except ViolationError as violation:
        return violation.kind
    return "good"


class TestOrder:
    @pytest.mark.parametrize(
        ("numbers", "kind"),
        [((0, 1, 2), "good"), ((0, 2), "good"), ((0, 1, 1), "repeated"), ((1, 0), "reordered"), ((0, 9), "foreign")],
    )
    def test_every_record_is_there_once_and_in_the_order_of_the_source(
        self, numbers: tuple[int, ...], kind: str
    ) -> None:
        assert order(history(3), copy_of(*numbers)) == kind

    def test_an_altered_record_is_found(self) -> None:
        copy = Copy("t", [Seen(0, "id-0", "other", b"key-0", False)], read_to=1)

        assert order(history(1), copy) == "altered"

    def test_a_decision_lets_the_copy_begin_again(self) -> None:
        copy = copy_of(0, 1, 0, 1)
        copy.restarts = [2]

        assert order(history(2), copy) == "good"
        copy.restarts = [3]
        assert order(history(2), copy) == "repeated"

    def test_aborted_records_are_copied_for_those_only_who_read_everything(self) -> None:
        made = history(2)
        made.aborted = {"id-1"}

        assert order(made, copy_of(0, 1)) == "good"
        assert order(made, copy_of(0, 1), committed=True) == "aborted"


class TestMissing:
    def test_what_is_not_on_the_target_is_missing_unless_it_is_excused(self) -> None:
        made = history(3)
        assert missing(made, copy_of(0, 2), committed=False) == ["id-1"]

        made.excused = {"id-1"}
        assert missing(made, copy_of(0, 2), committed=False) == []

    def test_what_target_retention_has_deleted_counts_as_missing_until_it_is_excused(self) -> None:
        copy = copy_of(0, 1, 2)
        copy.start = 1

        assert missing(history(3), copy, committed=False) == ["id-0"]

    def test_behind_an_open_transaction_nothing_is_missing_for_readers_of_committed_records(self) -> None:
        made = history(4)
        made.open = {"id-2": 2}

        assert missing(made, copy_of(0), committed=True) == ["id-1"]
        assert missing(made, copy_of(0), committed=False) == ["id-1", "id-2", "id-3"]

    def test_of_a_compacted_topic_the_newest_state_counts(self) -> None:
        made = History(compacted=True)
        records = [seen(0, 0, key="k"), seen(1, 1, key="k"), seen(2, 2, key="l")]
        made.add(records, 3)

        assert missing(made, Copy("t", records[1:], read_to=3), committed=False) == []
        assert missing(made, Copy("t", [records[0], records[2]], read_to=3), committed=False) == ["id-1"]

    def test_a_deletion_that_never_came_is_missing_unless_it_is_named(self) -> None:
        made = History(compacted=True)
        records = [seen(0, 0, key="k"), seen(1, 1, key="k", deletes=True)]
        made.add(records, 2)
        copy = Copy("t", records[:1], read_to=1)

        assert missing(made, copy, committed=False) == ["id-1"]
        assert missing(made, Copy("t", [], read_to=0), committed=False) == []
        assert deletions(made) == set()
        made.gone = {"id-0", "id-1"}
        made.excused = deletions(made)
        assert missing(made, copy, committed=False) == []


class TestGroups:
    def verdict(self, history: History, copy: Copy, here: int, there: int) -> bool:
        try:
            check_group("g", history, copy, here, there, set(), committed=False)
        except ViolationError:
            return False
        return True

    def test_it_reads_the_same_record_next(self) -> None:
        assert self.verdict(history(3), copy_of(0, 1, 2), 1, 1)
        assert not self.verdict(history(3), copy_of(0, 1, 2), 1, 0)
        assert not self.verdict(history(3), copy_of(0, 1, 2), 1, 2)

    def test_both_may_be_at_their_ends_and_none_beyond(self) -> None:
        assert self.verdict(history(3), copy_of(0, 1, 2), 3, 3)
        assert not self.verdict(history(3), copy_of(0, 1, 2), 3, 4)

    def test_what_is_copied_next_is_waited_for_and_what_never_comes_is_skipped(self) -> None:
        made = history(3)
        assert self.verdict(made, copy_of(0), 1, 1)

        made.excused = {"id-1"}
        assert not self.verdict(made, copy_of(0), 1, 1)

    def test_records_that_were_passed_over_are_skipped(self) -> None:
        assert not self.verdict(history(3), copy_of(0, 2), 1, 2)

    def test_records_that_the_source_alone_has_lost_may_be_read(self) -> None:
        made = history(3)
        made.gone = {"id-0"}

        assert self.verdict(made, copy_of(0, 1, 2), 0, 0)


def test_a_backfill_holds_exactly_what_the_source_holds() -> None:
    made = history(3)
    check_range("b", made, copy_of(0, 1, 2).records, committed=False)
    for wrong in (copy_of(0, 1), copy_of(0, 1, 2, 2), copy_of(0, 2, 1)):
        with pytest.raises(ViolationError, match="backfill"):
            check_range("b", made, wrong.records, committed=False)
