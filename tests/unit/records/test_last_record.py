"""By one record and its checksum a log is known again, whatever has become of the batch that it was in."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.records.last_records import LastRecord, find_last_records, is_same, is_same_copy, last_record_at
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord, batch, marker, message_set

FIRST = 1_704_067_200_000
values = st.none() | st.binary(max_size=40)
codecs = st.sampled_from([0, 1, 2, 3, 4])


@st.composite
def logs(draw: st.DrawFn) -> list[list[SourceRecord]]:
    """Batches that follow one another, from some offset on."""
    offset, found = draw(st.integers(0, 10_000)), []
    for size in draw(st.lists(st.integers(1, 8), min_size=1, max_size=5)):
        made = []
        for number in range(offset, offset + size):
            timestamp = FIRST + draw(st.integers(-1_000, 1_000))
            made.append(SourceRecord(number, timestamp, draw(values), draw(values), (("h", draw(values)),)))
        found.append(made)
        offset += size
    return found


def taken(log: list[list[SourceRecord]], codec: int = 0, *, end: int | None = None) -> LastRecord:
    data = b"".join(batch(each, codec=codec) for each in log)
    return find_last_records(memoryview(data), end=log[-1][-1].offset + 1 if end is None else end).of_log


@given(logs(), codecs, codecs, st.data())
def test_it_is_the_same_however_the_batch_was_compacted_or_made_anew(
    log: list[list[SourceRecord]], codec: int, later: int, data: st.DataObject
) -> None:
    known = taken(log, codec)
    every = [record for each in log for record in each]
    first, last = data.draw(st.integers(0, known.offset - every[0].offset)), every[-1].offset
    kept = [each for each in every[first:] if each.offset == known.offset or data.draw(st.booleans())]

    now = batch(kept, codec=later, base_offset=every[first].offset, last_offset=last)

    assert known.offset == log[-1][0].offset
    assert is_same(memoryview(now), known) is True


@given(logs(), codecs, st.sampled_from(["timestamp", "key", "value", "headers"]))
def test_another_record_at_its_offset_is_noticed(log: list[list[SourceRecord]], codec: int, changed: str) -> None:
    known = taken(log)
    first, *others = log[-1]
    change: object = {"timestamp": first.timestamp + 1, "headers": (("other", None),)}.get(changed, b"other" * 20)

    now = batch([replace(first, **{changed: change}), *others], codec=codec)

    assert is_same(memoryview(now), known) is False


@given(logs(), codecs)
def test_the_record_at_an_offset_is_the_one_that_is_known_again(log: list[list[SourceRecord]], codec: int) -> None:
    for part in log:
        data = memoryview(batch(part, codec=codec))
        known = [last_record_at(data, record.offset) for record in part]
        assert [each and each.offset for each in known] == [record.offset for record in part]
        assert all(is_same(data, each) for each in known if each is not None)
        assert last_record_at(data, part[-1].offset + 1) is None


@given(logs())
def test_of_batches_behind_the_end_none_is_taken(log: list[list[SourceRecord]]) -> None:
    for each in log:
        assert taken(log, end=each[-1].offset + 1).offset == each[0].offset


def test_where_no_record_has_the_offset_nothing_is_told() -> None:
    records = [SourceRecord(number) for number in range(10, 14)]
    known = taken([records])

    now = batch(records[1:], base_offset=10, last_offset=13)

    assert is_same(memoryview(now), known) is None


def test_records_with_the_brokers_time_have_the_one_of_their_batch() -> None:
    records = [SourceRecord(number) for number in range(3)]
    data = batch(records, attributes=LOG_APPEND_TIME, max_timestamp=FIRST)
    known = find_last_records(memoryview(data), end=3).of_log

    assert known is not None
    # A target that replaces timestamps has another time.
    assert is_same_copy(memoryview(data), known) is None
    assert is_same(memoryview(batch(records, attributes=LOG_APPEND_TIME, max_timestamp=FIRST)), known) is True
    assert is_same(memoryview(batch(records, attributes=LOG_APPEND_TIME, max_timestamp=FIRST + 1)), known) is False


def test_a_marker_is_a_record_too() -> None:
    data = batch([SourceRecord(0)])

    known, of_data = find_last_records(memoryview(data + marker(1, 7, abort=False)), end=2)

    assert known is not None
    # The target has only the record before it.
    assert of_data == find_last_records(memoryview(data), end=1).of_log
    assert known.offset == 1
    assert is_same(memoryview(marker(1, 7, abort=False)), known) is True
    assert is_same(memoryview(marker(1, 7, abort=True)), known) is False


def test_what_cannot_be_read_tells_nothing() -> None:
    for case, data in (
        ("nothing", b""),
        ("less than a length", b"\0" * 11),
        ("zeros", b"\0" * 200),
        ("ones", b"\xff" * 200),
        ("old format", message_set([SourceRecord(0)], magic=1)),
    ):
        assert find_last_records(memoryview(data), end=100) == (None, None), case
        assert is_same(memoryview(data), LastRecord(0, 100, 1)) is None, case


@given(logs(), codecs, st.data())
def test_a_batch_that_is_damaged_or_came_in_part_tells_nothing(
    log: list[list[SourceRecord]], codec: int, data: st.DataObject
) -> None:
    whole = batch(log[0], codec=codec)
    damaged = bytearray(whole)
    damaged[data.draw(st.integers(21, len(damaged) - 1))] ^= 0x10
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]

    for each in (damaged, part):
        assert find_last_records(memoryview(each), end=2**40).of_log is None
        assert is_same(memoryview(each), taken(log[:1], codec)) is None
