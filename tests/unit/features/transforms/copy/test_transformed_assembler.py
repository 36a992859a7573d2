"""From fetches to rows: every record that a reader sees, once, whatever the fetches bring; what fails is left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.copy.model import FailedRecord
from mirror_lib.features.transforms.copy.row_assembler import RowAssembler, RowPart
from mirror_lib.records.header import Codec
from tests.support.records.record_batches import SourceRecord, batch

REFUSED = MirrorError("it cannot be transformed.")


def assembler(start: int, end: int, *, leave_out: bool = False, failed: Sequence[FailedRecord] = ()) -> RowAssembler:
    return RowAssembler(
        topic="orders",
        partition=0,
        start=start,
        end=end,
        read_committed=False,
        skip=leave_out,
        limits=DecodeLimits(part=1),
        failed=failed,
    )


def fed(taken: RowAssembler, data: bytes) -> list[RowPart]:
    """All that a fetch gives."""
    parts = taken.feed(data)
    while taken.has_more:
        parts += taken.more()
    return parts


def log(sizes: Sequence[int], codec: int = 0) -> list[bytes]:
    """Batches of so many records, from offset 0 on."""
    found, first = [], 0
    for size in sizes:
        found.append(
            batch([SourceRecord(first + each, value=b"%d" % (first + each)) for each in range(size)], codec=codec)
        )
        first += size
    return found


def offsets(parts: Sequence[RowPart]) -> list[int]:
    return [offset for part in parts for offset in part.records.column("offset").to_pylist()]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.data(), st.sampled_from([0, 1, 3, 4]))
def test_given_any_fetches_of_a_range_when_fed_then_every_record_of_it_comes_once(
    sizes: list[int], data: st.DataObject, codec: int
) -> None:
    batches, total = log(sizes, codec), sum(sizes)
    start = data.draw(st.integers(0, total - 1))
    end = data.draw(st.integers(start + 1, total))
    taken = assembler(start, end)
    found: list[int] = []

    while not taken.is_finished:
        first = next(n for n in range(len(sizes)) if sum(sizes[: n + 1]) > taken.next_offset)
        whole = data.draw(st.integers(1, len(sizes) - first))
        cut = data.draw(st.integers(0, len(batches[first + whole]) - 1)) if first + whole < len(sizes) else 0
        rest = batches[first + whole][:cut] if cut else b""
        found += offsets(fed(taken, b"".join(batches[first : first + whole]) + rest))

    assert found == list(range(start, end))
    assert taken.failure is None
    assert taken.leader_epoch == 5


def test_given_a_record_that_fails_when_nothing_is_left_out_then_it_ends_there_with_its_error() -> None:
    taken = assembler(0, 30, failed=[FailedRecord(17, REFUSED), FailedRecord(3, REFUSED)])

    assert offsets(fed(taken, b"".join(log([10, 10, 10])))) == [0, 1, 2]
    assert taken.failure is REFUSED
    assert (taken.next_offset, taken.is_finished) == (3, False)


def test_given_records_that_fail_when_they_are_left_out_then_the_others_come_and_their_bytes_are_kept() -> None:
    taken = assembler(0, 30, leave_out=True, failed=[FailedRecord(3, REFUSED), FailedRecord(29, REFUSED)])

    found = offsets(fed(taken, b"".join(log([10, 10, 10]))))

    assert found == [offset for offset in range(30) if offset not in (3, 29)]
    assert [(each.first_offset, each.next_offset, each.error) for each in taken.take_skipped()] == [
        (3, 4, REFUSED),
        (29, 30, REFUSED),
    ]
    assert taken.is_finished


def test_given_a_record_that_ends_the_partition_when_others_are_left_out_then_it_ends_before_it() -> None:
    last = FailedRecord(15, REFUSED, ends_partition=True)
    taken = assembler(0, 30, leave_out=True, failed=[FailedRecord(3, REFUSED), last])

    assert offsets(fed(taken, b"".join(log([10, 10, 10])))) == [each for each in range(15) if each != 3]
    assert (taken.failure, taken.next_offset) == (REFUSED, 15)


def test_given_a_damaged_batch_when_fed_then_what_precedes_it_comes_and_the_policy_decides(
    subtests: pytest.Subtests,
) -> None:
    for leave_out in (False, True):
        with subtests.test(leave_out=leave_out):
            good, bad, after = log([10, 10, 10])
            damaged = bytearray(bad)
            damaged[-1] ^= 0xFF
            taken = assembler(0, 30, leave_out=leave_out)

            found = offsets(fed(taken, good + bytes(damaged) + after))
            found += offsets(fed(taken, bytes(damaged) + after))
            found += offsets(fed(taken, after)) if leave_out else []

            assert found == [*range(10), *(range(20, 30) if leave_out else ())]
            assert (taken.failure is None) == leave_out
            assert [(each.first_offset, each.next_offset) for each in taken.take_skipped()] == (
                [(10, 20)] if leave_out else []
            )


def test_given_a_codec_when_fed_then_the_rows_know_it() -> None:
    (part,) = assembler(0, 10).feed(log([10], codec=3)[0])

    assert part.codec is Codec.LZ4
