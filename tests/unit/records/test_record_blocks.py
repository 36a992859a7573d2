"""Small batches in a row as one block: the same records as batch by batch, and nothing that cannot be one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow.record_blocks import SMALL_BATCH, RecordBlock, read_blocks
from mirror_lib.records.records import Record, RecordError
from mirror_lib.records.spans import Span, read_spans
from tests.support.records.logs import log, numbered
from tests.support.records.record_batches import (
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    SourceRecord,
    batch,
    marker,
    message_set,
    sealed,
)

_TIMES = st.integers(0, 2_000_000_000_000)
_SMALL = [1] * 20


def _read(raw: bytes, aborted: tuple[tuple[int, int], ...] = (), *, committed: bool = True) -> list[Span | RecordBlock]:
    return read_blocks(memoryview(raw), aborted, read_committed=committed)[0]


def _records(found: Iterable[Span | RecordBlock]) -> list[Record]:
    records: list[Record] = []
    for each in found:
        if isinstance(each, RecordBlock):
            records += map(Record, each.offsets.tolist(), each.times.tolist(), each.tails)
        else:
            records += each.records()
    return records


@given(
    contents=st.lists(
        st.tuples(st.none() | st.binary(max_size=300), st.none() | st.binary(max_size=300), _TIMES),
        min_size=1,
        max_size=80,
    ),
    sizes=st.lists(st.integers(1, 4), max_size=40),
    steps=st.lists(st.integers(1, 3), min_size=80, max_size=80),
    codec=st.sampled_from([0, 1, 2, 3, 4]),
    attributes=st.sampled_from([0, LOG_APPEND_TIME, TRANSACTIONAL]),
)
def test_a_block_has_the_records_of_its_batches(
    contents: list[tuple[bytes | None, bytes | None, int]],
    sizes: list[int],
    steps: list[int],
    codec: int,
    attributes: int,
) -> None:
    offsets = [100 + sum(steps[:number]) for number in range(len(contents))]
    records = [SourceRecord(offset, time, *parts) for offset, (*parts, time) in zip(offsets, contents, strict=True)]
    raw = log(records, sizes, codec=codec, attributes=attributes)

    found, size = read_blocks(memoryview(raw), (), read_committed=True)

    one_by_one, same_size = read_spans(memoryview(raw), (), read_committed=True)
    assert _records(found) == _records(one_by_one)
    assert size == same_size == len(raw)
    assert found[-1].next_offset == one_by_one[-1].next_offset


def test_small_batches_in_a_row_make_one_block() -> None:
    (block,) = _read(log(numbered(50, first=7), [1, 2, 3] * 8, codec=3))

    assert isinstance(block, RecordBlock)
    assert (block.first, block.next_offset, len(block)) == (7, 57, 50)


def test_parts_of_a_block_know_their_offsets() -> None:
    (block,) = _read(log(numbered(20, first=100), _SMALL))
    assert isinstance(block, RecordBlock)

    first, second = block.part(0, 8), block.part(8, 20)

    assert (first.first, first.next_offset, second.first, second.next_offset) == (100, 108, 108, 120)
    assert _records([first, second]) == _records([block])
    assert block.before(108) == 8


def test_batches_that_would_fill_the_memory_stay_compressed() -> None:
    records = [replace(record, value=bytes(600_000)) for record in numbered(30)]

    found = _read(log(records, [1] * 30, codec=4))

    assert [type(each) for each in found] == [Span] * 30


def test_a_few_batches_and_large_ones_stay_as_they_are() -> None:
    large = [replace(record, value=b"x" * SMALL_BATCH) for record in numbered(2, first=20)]
    raw = log(numbered(20), _SMALL) + log(large, [1, 1]) + log(numbered(3, first=22), [1, 1, 1])

    found = _read(raw)

    assert [type(each) for each in found] == [RecordBlock, *[Span] * 5]
    assert [record.offset for record in _records(found)] == list(range(25))


def test_control_batches_do_not_part_a_block_and_count_to_its_end() -> None:
    raw = b"".join(
        batch(numbered(1, first=2 * number), attributes=TRANSACTIONAL, producer_id=5)
        + marker(2 * number + 1, 5, abort=False)
        for number in range(12)
    )

    (block,) = _read(raw)

    assert isinstance(block, RecordBlock)
    assert block.offsets.tolist() == list(range(0, 24, 2))
    assert block.next_offset == 24


def test_aborted_transactions_are_hidden_from_who_reads_committed_ones_only() -> None:
    raw = b"".join(
        batch(numbered(1, first=offset), attributes=TRANSACTIONAL, producer_id=offset % 2) for offset in range(20)
    )
    raw += marker(20, 0, abort=True) + marker(21, 1, abort=False)

    committed, all_of_them = _read(raw, ((0, 0),)), _read(raw, committed=False)

    assert [record.offset for record in _records(committed)] == list(range(1, 20, 2))
    assert [record.offset for record in _records(all_of_them)] == list(range(20))


def test_a_body_that_is_not_what_its_header_says_is_left_for_the_one_who_decodes_it(subtests: pytest.Subtests) -> None:
    for change in ({61: 0x7F}, {61: 0x01}, {60: 9}):
        with subtests.test(change=change):
            odd = bytearray(log(numbered(1, first=20)))
            for place, octet in change.items():
                odd[place] = octet
            raw = log(numbered(20), _SMALL) + sealed(odd) + log(numbered(1, first=21))

            found = _read(raw)

            assert [type(each) for each in found] == [Span] * 22
            with pytest.raises(RecordError):
                _records(found)


def test_old_formats_stay_as_they_are(subtests: pytest.Subtests) -> None:
    for magic in (0, 1):
        with subtests.test(magic=magic):
            old = message_set([SourceRecord(20, key=b"k"), SourceRecord(21)], magic=magic)
            raw = log(numbered(20), _SMALL) + old + log(numbered(20, first=22), _SMALL)

            found = _read(raw)

            assert [record.offset for record in _records(found)] == list(range(42))


@given(raw=st.binary(max_size=300), flips=st.dictionaries(st.integers(0, 2_500), st.integers(0, 255), max_size=3))
def test_whatever_arrives_is_read_as_it_is_batch_by_batch(raw: bytes, flips: dict[int, int]) -> None:
    data = bytearray(log(numbered(20), _SMALL, codec=3) + raw)
    for place, octet in flips.items():
        data[place % len(data)] = octet
    try:
        expected, size = read_spans(memoryview(bytes(data)), (), read_committed=True)
    except RecordError:
        with pytest.raises(RecordError):
            read_blocks(memoryview(bytes(data)), (), read_committed=True)
        return

    found, same_size = read_blocks(memoryview(bytes(data)), (), read_committed=True)

    assert same_size == size
    assert _outcome(found) == _outcome(expected)


def _outcome(found: Iterable[Span | RecordBlock]) -> list[Record] | str:
    try:
        return _records(found)
    except ValueError as error:
        return type(error).__name__
