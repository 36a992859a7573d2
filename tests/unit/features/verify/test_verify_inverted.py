"""Ranges that the opposite flow has copied: split off the flow's own, and compared with the sides exchanged."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.verify.compare.compare import RangeComparer
from mirror_lib.features.verify.compare.inverted import copied_from, inverse_check, inverse_outcome
from mirror_lib.features.verify.findings import DifferenceKind, RangeOutcome, VerifiedMark
from mirror_lib.features.verify.model import CheckRange, KnownGap, OppositeFacts, PartitionCheck, VerifyMode
from mirror_lib.features.verify.planning.plan import plan_verification
from mirror_lib.features.verify.state.plan import plan_state
from mirror_lib.ledger.directions import MapPart
from mirror_lib.offsets.runs import OffsetRun, decode, merge
from mirror_lib.records.spans import read_spans
from mirror_lib.topology.names import FlowId
from tests.support.brokers.partitions import verify_facts
from tests.support.records.logs import at, check_of, log, numbered, whole_range
from tests.support.records.offset_maps import records, run_lists
from tests.support.records.record_batches import TRANSACTIONAL, batch, marker

_PRODUCER = 7


def _check(runs: tuple[OffsetRun, ...], parts: tuple[MapPart, ...], **more: Any) -> PartitionCheck:
    settled = VerifiedMark(runs[-1].source_next, runs[-1].target_next)
    facts = verify_facts(runs=runs, settled=settled, parts=parts, **more)
    (check,) = plan_verification(FlowId("A", "B"), [facts], mode=VerifyMode.FULL).partitions
    return check


@given(data=st.data(), runs=run_lists(min_runs=1))
def test_every_record_is_compared_once_and_as_the_flow_has_copied_it_that_did(
    data: st.DataObject, runs: tuple[OffsetRun, ...]
) -> None:
    # Given hand-overs between some runs of the map, after each of which the other flow copies
    begins = [0, *sorted(data.draw(st.sets(st.integers(1, len(runs) - 1))) if len(runs) > 1 else ())]
    first = data.draw(st.booleans())
    parts = tuple(
        MapPart(runs[at].source_first, runs[at].target_first, first ^ bool(number % 2))
        for number, at in enumerate(begins)
    )
    wanted = {}
    for number, run in enumerate(runs):
        (part,) = [part for part, at in zip(parts, begins, strict=True) if at <= number][-1:]
        wanted |= dict.fromkeys(records([run]), part.by_opposite)

    check = _check(merge(runs), parts)

    found = [(each, range_.by_opposite) for range_ in check.ranges for each in records(range_.runs)]
    assert len(found) == len(wanted)
    assert dict(found) == wanted
    for before, behind in zip(check.ranges, check.ranges[1:], strict=False):
        assert (before.source_next, before.target_next) == (behind.source_first, behind.target_first)
        assert not before.to_end
    assert check.ranges[-1].to_end
    assert check.ranges[0].source_first == runs[0].source_first
    assert check.ranges[-1].source_next == runs[-1].source_next


@given(runs=run_lists(), first=st.integers(0, 60), count=st.integers(1, 10))
def test_an_aborted_batch_counts_where_one_of_its_records_was_copied(
    runs: tuple[OffsetRun, ...], first: int, count: int
) -> None:
    copied = {source for source, _ in records(runs)}

    assert copied_from(runs)(first, first + count) == bool(copied & set(range(first, first + count)))


def _compared(check: PartitionCheck, range_: CheckRange, source: bytes, target: bytes) -> RangeOutcome:
    """The comparison as `verify.run` makes it, of whole logs; the target's only transaction was aborted."""
    back, inverse = inverse_check(check, range_)
    comparer = RangeComparer(back, inverse)
    written, _ = read_spans(memoryview(target), [(_PRODUCER, 0)], read_committed=True, shown=copied_from(inverse.runs))
    copied, _ = read_spans(memoryview(source), (), read_committed=True)
    comparer.walk()
    comparer.feed_source(written, comparer.source.end)
    comparer.feed_target(copied, comparer.target.end)
    comparer.walk()
    assert comparer.finished
    return inverse_outcome(comparer.outcome(), range_)


def _aborted(first: int) -> bytes:
    return batch(at(numbered(3), first), attributes=TRANSACTIONAL, producer_id=_PRODUCER)


#: The source of the present flow is the copy: 3 records of an aborted transaction, and 4 others.
_COPY = log([*numbered(3), *at(numbered(7), 0)[3:]])
#: On the target, where they were written, the marker of the transaction lies between them.
_WRITTEN = _aborted(0) + marker(3, _PRODUCER, abort=True) + log(at(numbered(7)[3:], 4))
_RUNS = [OffsetRun(0, 0, 3), OffsetRun(3, 4, 4)]


def test_aborted_records_that_were_copied_are_equal_to_their_copies() -> None:
    range_ = whole_range(_RUNS, to_end=8)

    outcome = _compared(check_of(range_), range_, _COPY, _WRITTEN)

    assert (outcome.records, outcome.differences, outcome.gone_on_both) == (7, (), 0)
    assert (outcome.source_next, outcome.target_next) == (7, 8)


def test_aborted_records_that_were_never_copied_are_no_records() -> None:
    range_ = whole_range([OffsetRun(0, 4, 4)], to_end=8)
    range_ = CheckRange(0, 4, 0, 8, records=4, encoded_runs=range_.encoded_runs, to_end=True)

    outcome = _compared(check_of(range_), range_, log(at(numbered(7)[3:], 0)), _WRITTEN)

    assert (outcome.records, outcome.differences) == (4, ())


def test_a_loss_is_told_as_the_present_flow_has_it() -> None:
    range_ = whole_range(_RUNS, to_end=8)
    shorter_original = _WRITTEN[: -len(log(at(numbered(7)[3:], 4)))] + log(at(numbered(6)[3:], 4))

    for source, target, kind, places in (
        (log(numbered(7)[:6]), _WRITTEN, DifferenceKind.EXTRA, (None, 7)),
        (_COPY, shorter_original, DifferenceKind.MISSING, (6, None)),
    ):
        outcome = _compared(check_of(range_), range_, source, target)
        (found,) = outcome.differences
        assert (found.kind, (found.source_offset, found.target_offset)) == (kind, places)


def test_what_the_flow_there_has_left_out_is_left_out_on_the_way_back() -> None:
    # Given a record that the flow there could not copy, by its gap
    range_ = whole_range([OffsetRun(0, 0, 3), OffsetRun(3, 4, 3)], to_end=7)
    source = log([*numbered(3), *at(numbered(7)[4:], 3)])
    gap = KnownGap(3, 4, "poison-record")

    outcome = _compared(check_of(range_, opposite=OppositeFacts(known_gaps=(gap,))), range_, source, log(numbered(7)))

    assert (outcome.records, outcome.skipped, outcome.differences) == (6, 1, ())


def test_by_state_aborted_records_that_the_opposite_flow_has_copied_are_known() -> None:
    # Given a compacted topic whose first 3 records the opposite flow has copied, and 2 the flow itself
    facts = verify_facts(
        runs=(OffsetRun(0, 1, 3), OffsetRun(3, 5, 2)),
        source_compacted=True,
        target_compacted=True,
        copied_to=5,
        parts=(MapPart(0, 1, by_opposite=True), MapPart(3, 5, by_opposite=False)),
    )

    (check,) = plan_state(FlowId("A", "B"), [facts]).partitions

    assert check.state is not None
    shown = copied_from(decode(check.state.by_opposite))
    assert [shown(offset, offset + 1) for offset in range(7)] == [False, True, True, True, False, False, False]
