"""What "in sync" means: one definition, the same in Python and in SQL."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, literal, select

from mirror_lib.ledger.queries import group_columns
from mirror_lib.offsets.group_standing import IN_SYNC, NOT_THIS_FLOWS, GroupReason, is_behind, why_not_in_sync

REASONS = st.none() | st.sampled_from(GroupReason)
RECORDS = st.none() | st.integers(0, 10)


@given(reason=REASONS, due=st.booleans(), duplicates=RECORDS, skipped=RECORDS)
def test_a_position_is_in_sync_when_nothing_is_due_read_again_or_skipped(
    reason: GroupReason | None, due: bool, duplicates: int | None, skipped: int | None
) -> None:
    told = why_not_in_sync(reason, due=due, duplicates=duplicates, skipped=skipped)

    assert (told is None) == (reason is None and not due and not duplicates and not skipped)


@given(reason=REASONS, duplicates=RECORDS, skipped=RECORDS)
def test_a_cause_of_its_own_is_told_before_its_numbers(
    reason: GroupReason | None, duplicates: int | None, skipped: int | None
) -> None:
    told = why_not_in_sync(reason, due=False, duplicates=duplicates, skipped=skipped)

    if reason not in (None, GroupReason.BETWEEN_SYNCS):
        assert told is reason
    elif skipped:
        assert told is GroupReason.SKIPS_RECORDS


@given(reason=st.sampled_from([GroupReason.GROUP_ACTIVE_ON_TARGET, GroupReason.OTHER_GROUP_ON_TARGET]))
def test_a_checkpoint_that_is_due_hides_no_reason_that_it_does_not_end(reason: GroupReason) -> None:
    assert why_not_in_sync(reason, due=True, duplicates=0, skipped=0) is reason
    assert why_not_in_sync(None, due=True, duplicates=0, skipped=0) is GroupReason.PENDING
    assert why_not_in_sync(GroupReason.SKIPS_RECORDS, due=True, duplicates=0, skipped=1) is GroupReason.PENDING


def test_what_counts_as_behind_is_the_same_for_the_ledger() -> None:
    with create_engine("sqlite://").connect() as connection:
        for reason in (None, *GroupReason):
            behind, own = connection.execute(
                select(group_columns.is_behind(literal(reason)), group_columns.is_own(literal(reason)))
            ).one()
            assert bool(behind) == is_behind(reason)
            assert bool(own) == (reason not in NOT_THIS_FLOWS)
    assert not is_behind(IN_SYNC)
