"""The checker finds what was planted: a duplicate, a gap, a swap, an alteration, a lost tail."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tools.faults.records.sequences import ArrivalCheck, Findings, Seen, compare, input_faults
from tools.faults.records.stamp import Content

_PRODUCERS = (1, 2)


def _seen(producer: int, sequence: int, *, end: bool = False, intact: bool = True) -> Seen:
    content = Content("orders", 0, 1_700_000_000_000 + sequence, b"k", b"v", ())
    return Seen(content.stamp(producer, sequence, end=end), intact)


def _partition(length: int = 6) -> list[Seen]:
    """Two producers in turn, each with its end marker."""
    return [
        _seen(producer, sequence, end=sequence == length - 1) for sequence in range(length) for producer in _PRODUCERS
    ]


def _arrived(records: Sequence[Seen]) -> Findings:
    check = ArrivalCheck()
    for record in records:
        check.add("orders", 0, record)
    return check.findings()


def test_each_planted_fault_is_found_by_both_checks() -> None:
    records = _partition()
    altered, unstamped = _seen(2, 1, intact=False), Seen(None, intact=False)
    for target, findings in (
        (records, Findings()),
        ([*records[:5], records[2], *records[5:]], Findings(duplicated=1)),
        # A batch that was appended again.
        ([*records[:6], *records[2:6], *records[6:]], Findings(duplicated=4)),
        (records[:4] + records[6:], Findings(missing=2)),
        ([*records[:3], altered, *records[4:]], Findings(altered=1)),
        ([*records[:3], unstamped, *records[4:]], Findings(missing=1, altered=1)),
    ):
        assert _arrived(target) == findings
        assert compare(records, target) == findings


def test_a_swap_of_one_producer_is_found_at_arrival_and_one_of_two_by_the_complete_check() -> None:
    records = _partition()
    of_one, of_two = list(records), list(records)
    of_one[4], of_one[6] = of_one[6], of_one[4]
    of_two[4], of_two[5] = of_two[5], of_two[4]

    assert _arrived(of_one) == Findings(out_of_order=1)
    assert compare(records, of_one).out_of_order > 0
    assert compare(records, of_two) == Findings(out_of_order=1)


def test_the_complete_check_finds_strangers_and_a_lost_tail() -> None:
    records = _partition()

    assert compare(records, [*records, _seen(3, 0)]) == Findings(altered=1)
    assert compare(records, records[:-3]) == Findings(missing=3)


def test_a_record_that_the_source_has_twice_is_no_fault_of_the_copy() -> None:
    records = _partition()
    repeated = [*records[:5], records[2], *records[5:]]

    assert compare(repeated, repeated) == Findings()
    assert compare(repeated, records) != Findings()


def test_an_input_with_a_hole_a_lost_end_or_a_bad_checksum_is_no_ground_for_a_judgement() -> None:
    records = _partition()

    assert input_faults(records, _PRODUCERS) == []
    assert input_faults(records[:-1], _PRODUCERS) == ["the end marker of producer 2 is at a wrong place"]
    assert input_faults(records[:2] + records[3:], _PRODUCERS) == ["the records of producer 1 are not in sequence"]
    assert input_faults([_seen(1, 0, end=True, intact=False)], [1]) == ["records do not match their checksums"]


def test_a_late_record_moves_from_missing_to_out_of_order() -> None:
    check = ArrivalCheck()
    for sequence in (0, 2):
        check.add("orders", 0, _seen(1, sequence))
    before = check.findings()

    check.add("orders", 0, _seen(1, 1))

    assert before == Findings(missing=1)
    assert check.findings() == Findings(out_of_order=1)
    assert check.findings().since(before) == Findings(out_of_order=1)


@given(st.integers(1, 40), st.data())
def test_both_checks_count_what_was_left_out_and_what_was_repeated(length: int, data: st.DataObject) -> None:
    records = [_seen(1, sequence) for sequence in range(length)]
    # What stands behind the last record that arrived is not known to be missing before the end.
    dropped = data.draw(st.sets(st.integers(0, length - 2), max_size=length - 1)) if length > 1 else set()
    repeated = data.draw(st.lists(st.sampled_from(sorted(set(range(length)) - dropped)), max_size=5))
    target = [record for place, record in enumerate(records) if place not in dropped]
    target += [records[place] for place in repeated]

    expected = Findings(missing=len(dropped), duplicated=len(repeated))
    assert _arrived(target) == expected
    assert compare(records, target) == expected


def test_partitions_are_judged_apart() -> None:
    for partition in (0, 1):
        check = ArrivalCheck()
        for sequence in (0, 1):
            check.add("orders", 0, _seen(1, sequence))
        check.add("orders", 1, _seen(1, 0))

        check.add("orders", partition, _seen(1, 0))

        assert check.findings() == Findings(duplicated=1), partition
