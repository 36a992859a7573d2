"""The invariants of the model: each holds for a good copy, and fails for the fault that it is for."""

import pytest

from tools.model.expected import (
    Copy,
    History,
    ViolationError,
    check_group,
    check_not_beyond,
    check_offsets,
    check_order,
    check_range,
    check_reader,
    check_verdict,
    deletions,
    lost,
    missing,
    outlived,
)
from tools.model.world import WRITTEN_DELETION, Seen

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


def test_every_record_is_there_once_in_the_order_of_the_source_and_unaltered() -> None:
    altered = Copy("t", [Seen(0, "id-0", "other", b"key-0", False)], read_to=1)
    for copy, kind in (
        (copy_of(0, 1, 2), "good"),
        (copy_of(0, 2), "good"),
        (copy_of(0, 1, 1), "repeated"),
        (copy_of(1, 0), "reordered"),
        (copy_of(0, 9), "foreign"),
        (altered, "altered"),
    ):
        assert order(history(3), copy) == kind


def test_where_offsets_are_the_same_a_record_at_another_one_is_a_violation() -> None:
    made = history(3)
    stranger = Seen(2, "stranger", "", None, False)

    check_offsets(PLACE, made, [seen(0, 0), seen(2, 2), stranger], {"stranger"})
    with pytest.raises(ViolationError, match="id-2 is at 1, on the source at 2"):
        check_offsets(PLACE, made, [seen(0, 0), seen(2, 1)], set())


def test_a_decision_lets_the_copy_begin_again() -> None:
    for restart, kind in ((2, "good"), (3, "repeated")):
        copy = copy_of(0, 1, 0, 1)
        copy.restarts = [restart]
        assert order(history(2), copy) == kind


def test_aborted_records_are_copied_for_those_only_who_read_everything() -> None:
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
    def verdict(self, history: History, copy: Copy, here: int, there: int, *, committed: bool = False) -> bool:
        try:
            check_group("g", history, copy, here, there, set(), committed=committed)
        except ViolationError:
            return False
        return True

    def test_it_reads_the_same_record_next_or_both_are_at_their_ends(self) -> None:
        for copy, here, there, good in (
            (copy_of(0, 1, 2), 1, 1, True),
            (copy_of(0, 1, 2), 1, 0, False),
            (copy_of(0, 1, 2), 1, 2, False),
            (copy_of(0, 1, 2), 3, 3, True),
            (copy_of(0, 1, 2), 3, 4, False),
            # A record was passed over.
            (copy_of(0, 2), 1, 2, False),
        ):
            assert self.verdict(history(3), copy, here, there) is good, (here, there)

    def test_what_is_copied_next_is_waited_for_and_what_never_comes_is_skipped(self) -> None:
        made = history(3)
        assert self.verdict(made, copy_of(0), 1, 1)

        made.excused = {"id-1"}
        assert not self.verdict(made, copy_of(0), 1, 1)

    def test_records_that_the_source_alone_has_lost_may_be_read(self) -> None:
        made = history(3)
        made.gone = {"id-0"}
        assert self.verdict(made, copy_of(0, 1, 2), 0, 0)

        made.open = {"id-2": 2}
        made.gone, made.first_present = {"id-0", "id-1"}, 2
        assert self.verdict(made, copy_of(0, 1), 0, 0, committed=True)
        made.gone = {"id-0"}
        assert not self.verdict(made, copy_of(0, 1), 2, 0, committed=True)


def test_a_backfill_holds_exactly_what_the_source_holds() -> None:
    made = history(3)
    check_range("b", made, copy_of(0, 1, 2).records, committed=False)
    for wrong in (copy_of(0, 1), copy_of(0, 1, 2, 2), copy_of(0, 2, 1)):
        with pytest.raises(ViolationError, match="backfill"):
            check_range("b", made, wrong.records, committed=False)


class TestMoved:
    def moved(self) -> History:
        """Two records of the source, and two that were written to the target after a cutover."""
        made = history(2)
        made.write_away([seen(2, 2), seen(3, 3)])
        return made

    def test_what_was_written_to_the_target_is_no_copy_and_at_the_source_when_it_comes_home(self) -> None:
        made = self.moved()

        assert order(made, copy_of(0, 1, 2, 3)) == "good"
        assert [each.id for each in made.present(committed=False)] == ["id-0", "id-1"]
        assert made.away == {"id-2", "id-3"}

        made.add([seen(2, 5), seen(3, 6)], 7)

        assert made.away == set()
        assert [each.offset for each in made.present(committed=False)] == [0, 1, 5, 6]

    def test_it_comes_home_once_in_order_and_unaltered(self) -> None:
        for records, kind in (
            ([seen(1, 5)], "repeated"),
            ([seen(2, 5), seen(2, 6)], "repeated"),
            ([seen(3, 5), seen(2, 6)], "reordered"),
            ([Seen(5, "id-2", "other", b"key-2", False)], "altered"),
        ):
            with pytest.raises(ViolationError, match=kind):
                self.moved().add(records, 7)


class TestDeletions:
    def deleted(self) -> History:
        """A key that was deleted, and of which the cleaner has left nothing."""
        made = History(compacted=True)
        made.add([seen(0, 0, key="k"), seen(1, 1, key="k", deletes=True)], 2)
        made.gone = {"id-0", "id-1"}
        return made

    def written(self, key: str) -> Seen:
        return Seen(1, WRITTEN_DELETION, "d", key.encode(), True)

    def test_a_key_that_lives_on_is_found_until_its_deletion_is_written(self) -> None:
        alive = Copy("t", [seen(0, 0, key="k")], read_to=1)

        assert outlived(self.deleted(), alive) == [b"k"]
        alive.records.append(self.written("k"))
        assert outlived(self.deleted(), alive) == []

    def test_only_keys_that_the_source_has_deleted_may_be_deleted(self) -> None:
        def check(key: str) -> None:
            copy = Copy("t", [seen(0, 0, key="k"), self.written(key)], read_to=2)
            check_order(PLACE, self.deleted(), copy, {WRITTEN_DELETION}, committed=False)

        check("k")
        with pytest.raises(ViolationError, match="foreign"):
            check("other")


class TestVerdicts:
    def judged(
        self, verdict: str, copy: Copy, *, plain: bool = True, complete: bool = True, compared_from: int = 0
    ) -> bool:
        """Whether the model agrees with what a verification says of a source that held and copied three records."""
        compared = {"source_first": 0, "source_next": 3, "target_first": compared_from, "target_next": 4}
        copied = {"id-0", "id-1", "id-2"}
        try:
            check_verdict(
                "p",
                {"verdict": verdict, "ranges": [compared]},
                history(3),
                copy,
                copied,
                {"stranger"},
                committed=False,
                by_state=False,
                plain=plain,
                complete=complete,
            )
        except ViolationError:
            return False
        return True

    def test_a_verdict_says_what_the_sides_hold(self) -> None:
        equal, lost_one = copy_of(0, 1, 2), copy_of(0, 2)
        assert self.judged("equal", equal)
        assert not self.judged("different", equal)
        assert not self.judged("unverifiable", equal)
        # A record that was copied and is gone must not pass for equal.
        assert not self.judged("equal", lost_one)
        assert self.judged("different", lost_one)

    def test_before_all_was_compared_it_may_be_unverifiable_and_after_a_decision_different(self) -> None:
        assert self.judged("unverifiable", copy_of(0, 1, 2), complete=False)
        assert not self.judged("different", copy_of(0, 1, 2), complete=False)
        assert self.judged("different", copy_of(0, 1, 2), plain=False)

    def test_what_somebody_else_wrote_in_between_must_not_pass_for_equal(self) -> None:
        copy = copy_of(0, 1, 2)
        copy.records.insert(1, Seen(1, "stranger", "s", None, False))

        assert not self.judged("equal", copy)
        assert self.judged("different", copy)
        # It was not looked at: an operator has let the copy begin behind it.
        assert self.judged("equal", copy, compared_from=2)


def test_what_only_the_source_has_is_lost_without_a_reason_for_it() -> None:
    made = history(3)
    made.gone = {"id-0"}

    assert lost(made, copy_of(1), committed=False) == ["id-2"]


def test_a_restored_source_needs_what_it_has_now() -> None:
    made = history(3)
    made.gone = {"id-0"}

    assert made.rewind([seen(0, 0), seen(1, 1)], 2) == {"id-2"}
    made.add([seen(9, 2)], 3)

    assert [each.id for each in made.present(committed=False)] == ["id-0", "id-1", "id-9"]
    assert missing(made, copy_of(0, 1, 2), committed=False) == ["id-9"]
    assert missing(made, copy_of(0, 1, 2, 9), committed=False) == []


@pytest.mark.parametrize(("here", "there", "skips"), [(2, 2, False), (2, 0, False), (1, 2, True), (3, 4, True)])
def test_a_group_is_not_committed_beyond_what_it_has_read(here: int, there: int, *, skips: bool) -> None:
    try:
        check_not_beyond("g", history(3), copy_of(0, 1, 2), here, there, committed=False)
    except ViolationError:
        assert skips
    else:
        assert not skips


@pytest.mark.parametrize(
    ("here", "there", "read", "wrong"),
    [
        (1, 1, (1, 2), False),
        (None, None, (0, 1, 2), False),
        # Without an offset on the target `latest` reads nothing; a consumer may also start too late, or too early.
        (None, None, (), True),
        (1, None, (1, 2), True),
        (1, 1, (2,), True),
        (1, 0, (0, 1, 2), True),
    ],
)
def test_a_consumer_reads_next_what_it_has_not_read(
    here: int | None, there: int | None, read: tuple[int, ...], *, wrong: bool
) -> None:
    # Where the source has no such partition, everything on the target is new.
    for known in (history(3), None) if here is None else (history(3),):
        found = [seen(number, number) for number in read]
        try:
            check_reader("g", known, copy_of(0, 1, 2), here, there, found, set(), committed=False)
        except ViolationError:
            assert wrong
        else:
            assert not wrong


@pytest.mark.parametrize(("read", "wrong"), [((1, 2, 3, 4), False), ((3, 4), False), ((1, 2, 4), True), ((4,), True)])
def test_the_cleaner_may_come_while_a_consumer_reads(read: tuple[int, ...], *, wrong: bool) -> None:
    """Between a consumer's look and that of the model the cleaner has removed the records 1 and 2."""
    known, copy = history(5), Copy("t", [seen(number, number) for number in (0, 3, 4)], read_to=5)
    known.compacted = True
    found = [seen(number, number) for number in read]
    try:
        check_reader("g", known, copy, 1, 1, found, set(), committed=False)
    except ViolationError:
        assert wrong
    else:
        assert not wrong


@pytest.mark.parametrize("undecided", [True, False])
def test_an_open_transaction_hides_what_a_consumer_reads_next(*, undecided: bool) -> None:
    """A killed run's, of records that the source has deleted since."""
    known = history(5)
    known.gone |= {each.id for each in known.records[:3]}
    try:
        check_reader("g", known, copy_of(0, 1, 2, 3), 1, 1, [], set(), committed=False, undecided=undecided)
    except ViolationError:
        assert not undecided
    else:
        assert undecided
