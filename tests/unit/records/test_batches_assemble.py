"""Raw batches in, batches for the target out: nothing lost, nothing changed, nothing that a broker would refuse."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirror_lib.errors import CorruptBatchError, RecordTooLargeError, Where
from mirror_lib.records.assemble import ReadyBatch
from mirror_lib.records.header import parse_header
from mirror_lib.records.stamping import stamp
from mirror_lib.records.transactions import TransactionCount
from tests.support.records.record_batches import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    SourceRecord,
    assembler,
    batch,
    fed,
    marker,
    message_set,
    read_with_aiokafka,
    read_with_kafka_python,
    sealed,
    with_body,
)

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = st.sampled_from([NONE, GZIP, SNAPPY, LZ4, ZSTD])
TIMES = st.integers(min_value=0, max_value=4_000_000_000_000)


def arrived(out: Sequence[ReadyBatch]) -> list[tuple[int, tuple[object, ...]]]:
    """(source offset, content) of every record, read by two readers, after checking what brokers demand of a batch."""
    result: list[tuple[int, tuple[object, ...]]] = []
    sequence = 0
    for ready in out:
        stamp(ready, 4711, 7, sequence)
        header = parse_header(ready.payload)
        assert header.base_offset == 0
        assert header.leader_epoch == -1
        assert header.magic == 2
        assert header.attributes & ~0x07 == 0
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 7, sequence)
        assert header.count == ready.count == header.last_offset_delta + 1
        assert header.length == len(ready.payload) - 12
        records = list(read_with_kafka_python(ready.payload))
        assert records == list(read_with_aiokafka(ready.payload))
        assert [record[0] for record in records] == list(range(ready.count))
        timestamps = [record[1] for record in records]
        assert header.max_timestamp == ready.max_timestamp == max(timestamps)
        assert header.first_timestamp == ready.first_timestamp
        sources = [offset for first, count in ready.source_runs for offset in range(first, first + count)]
        assert all(sum(left) < right[0] for left, right in pairwise(ready.source_runs))
        assert ready.source_next > sources[-1]
        result += [(offset, record[1:]) for offset, record in zip(sources, records, strict=True)]
        sequence += ready.count
    assert all(left.source_next <= right.source_runs[0][0] for left, right in pairwise(out))
    return result


def expected(records: Sequence[SourceRecord]) -> list[tuple[int, tuple[object, ...]]]:
    return [(record.offset, record.content) for record in records]


@st.composite
def logs(draw: st.DrawFn, *, holes: bool = False) -> tuple[list[SourceRecord], list[bytes]]:
    """A partition's records and the batches in which they lie, with or without compaction's holes."""
    contents = st.tuples(
        TIMES,
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3),
    )
    records, batches, offset = [], [], draw(st.integers(min_value=0, max_value=1 << 33))
    for _ in range(draw(st.integers(min_value=1, max_value=6))):
        members = []
        base = offset
        for timestamp, key, value, headers in draw(st.lists(contents, min_size=1, max_size=6)):
            if holes:
                offset += draw(st.sampled_from([0, 0, 0, 1, 5]))
            members.append(SourceRecord(offset, timestamp, key, value, tuple(headers)))
            offset += 1
        if holes:
            offset += draw(st.sampled_from([0, 0, 2]))
        batches.append(batch(members, codec=draw(CODECS), base_offset=base, last_offset=offset - 1))
        records += members
        if holes:
            offset += draw(st.sampled_from([0, 0, 3]))
    return records, batches


class TestGivenWholeBatches:
    @given(logs(), st.sampled_from([0, 100, 16_384]), st.sampled_from([200, 1000, 1 << 19]))
    def test_every_record_arrives_unchanged_and_in_order(
        self, log: tuple[list[SourceRecord], list[bytes]], passthrough_min: int, batch_max: int
    ) -> None:
        records, batches = log
        subject = assembler(start=records[0].offset, passthrough_min_bytes=passthrough_min, batch_max_bytes=batch_max)
        assert arrived(fed(subject, b"".join(batches))) == expected(records)
        assert subject.failure is None
        assert subject.next_offset == records[-1].offset + 1

    @given(logs(holes=True), st.data())
    def test_any_cut_of_the_bytes_into_fetches_gives_the_same(
        self, log: tuple[list[SourceRecord], list[bytes]], data: st.DataObject
    ) -> None:
        records, batches = log
        subject = assembler(start=records[0].offset, passthrough_min_bytes=150)
        out: list[ReadyBatch] = []
        last = parse_header(batches[-1]).base_offset + parse_header(batches[-1]).last_offset_delta
        while subject.next_offset <= last:
            # What a broker sends: from the batch that holds the offset, cut anywhere after that batch.
            rest = b"".join(
                raw
                for raw in batches
                if parse_header(raw).base_offset + parse_header(raw).last_offset_delta >= subject.next_offset
            )
            whole = 12 + parse_header(rest).length
            # Often within the next header.
            out += subject.feed(rest[: data.draw(st.integers(whole, len(rest)) | st.integers(whole, whole + 60))])
            assert subject.failure is None
        held = subject.flush()
        assert arrived([*out, held] if held else out) == expected(records)

    def test_a_large_batch_goes_on_with_its_compressed_bytes_untouched(self) -> None:
        raw = batch([SourceRecord(100 + i, value=b"v" * 50) for i in range(400)], codec=ZSTD, producer_id=9)
        (ready,) = fed(assembler(start=100, passthrough_min_bytes=100), raw)
        assert ready.payload[61:] == raw[61:]
        assert ready.source_runs == ((100, 400),)
        assert ready.source_next == 500

    def test_small_batches_of_one_codec_become_one_batch_of_that_codec(self) -> None:
        records = [SourceRecord(i, value=b"v" * 100) for i in range(100)]
        (ready,) = fed(assembler(), b"".join(batch([record], codec=LZ4) for record in records))
        assert parse_header(ready.payload).attributes == LZ4
        assert ready.source_runs == ((0, 100),)

    def test_a_small_batch_alone_is_not_rebuilt(self) -> None:
        raw = batch([SourceRecord(5)], codec=GZIP)
        (ready,) = fed(assembler(start=5), raw)
        assert ready.payload[61:] == raw[61:]

    def test_gathered_batches_stay_below_the_limit(self) -> None:
        raw = b"".join(batch([SourceRecord(i, value=bytes(100))]) for i in range(200))
        out = fed(assembler(batch_max_bytes=2_000), raw)
        assert len(out) > 10
        assert all(len(ready.payload) <= 2_000 for ready in out)

    def test_held_bytes_are_told_and_gone_after_a_flush(self) -> None:
        subject = assembler()
        subject.feed(batch([SourceRecord(0)]) + batch([SourceRecord(1)]))
        assert subject.held_bytes > 0
        subject.flush()
        assert subject.held_bytes == 0
        assert subject.flush() is None


class TestGivenBatchesOfOneRecord:
    """They are gathered in a loop of their own, which must not be told from the general way."""

    @given(
        st.lists(
            st.tuples(
                st.one_of(st.integers(0, 3), TIMES),
                st.none() | st.binary(max_size=3),
                st.none() | st.integers(0, 20_000).map(bytes),
                st.sampled_from([0, 0, 0, 0, 1]),
                st.sampled_from([NONE, NONE, NONE, NONE, LZ4]),
            ),
            min_size=2,
            max_size=30,
        ),
        st.sampled_from([500, 30_000, 1 << 19]),
        st.integers(0, 3),
    )
    @settings(max_examples=150)
    def test_every_record_arrives_unchanged_and_in_order(
        self, contents: list[tuple[int, bytes | None, bytes | None, int, int]], batch_max: int, cut: int
    ) -> None:
        records, batches, offset = [], [], 0
        for timestamp, key, value, hole, codec in contents:
            offset += hole
            records.append(SourceRecord(offset, timestamp, key, value))
            batches.append(batch(records[-1:], codec=codec))
            offset += 1
        end = max(offset - cut, 1)
        subject = assembler(end=end, batch_max_bytes=batch_max, target_max_message_bytes=1 << 20)
        assert arrived(fed(subject, b"".join(batches))) == expected([each for each in records if each.offset < end])
        assert subject.failure is None

    @given(st.integers(0, 5), st.integers(0, 60))
    def test_damage_is_told_wherever_it_is_and_nothing_after_it_arrives(self, number: int, position: int) -> None:
        batches = [bytearray(batch([SourceRecord(offset, value=b"some value")])) for offset in range(6)]
        batches[number][17 + position % (len(batches[number]) - 17)] ^= 0x20
        subject = assembler()
        assert [offset for offset, _ in arrived(fed(subject, b"".join(batches)))] == list(range(number))
        assert isinstance(subject.failure, CorruptBatchError)
        assert subject.failure.where == Where(topic="orders", partition=3, offset=number)
        assert subject.next_offset == number
        assert subject.feed(b"".join(batches[number + 1 :])) == []

    def test_aborted_and_control_batches_among_them_are_seen(self) -> None:
        log = [batch([SourceRecord(0)]), batch([SourceRecord(1)])]
        log += [batch([SourceRecord(2)], attributes=TRANSACTIONAL, producer_id=7), marker(3, 7, abort=True)]
        log += [batch([SourceRecord(4)]), batch([SourceRecord(5)])]
        out = fed(assembler(read_committed=True), b"".join(log), aborted=[(7, 2)])
        assert [offset for offset, _ in arrived(out)] == [0, 1, 4, 5]


class TestGivenARange:
    @given(logs(holes=True), st.data())
    def test_only_offsets_from_start_to_end_arrive(
        self, log: tuple[list[SourceRecord], list[bytes]], data: st.DataObject
    ) -> None:
        records, batches = log
        first, last = records[0].offset, records[-1].offset
        start = data.draw(st.integers(min_value=first, max_value=last))
        end = data.draw(st.integers(min_value=start + 1, max_value=last + 1))
        subject = assembler(start=start, end=end, passthrough_min_bytes=data.draw(st.sampled_from([0, 150, 16_384])))
        wanted = [record for record in records if start <= record.offset < end]
        out = fed(subject, b"".join(batches))
        assert arrived(out) == expected(wanted)
        assert subject.is_finished
        assert subject.next_offset == end
        assert all(ready.source_next <= end for ready in out)

    def test_nothing_between_here_and_the_end_can_be_skipped(self) -> None:
        subject = assembler(end=100)
        subject.feed(batch([SourceRecord(0)]))
        held = subject.skip_to_end()
        assert held.count == 1
        assert subject.is_finished

    def test_a_batch_beyond_the_end_finishes_the_range(self) -> None:
        subject = assembler(start=0, end=10)
        assert fed(subject, batch([SourceRecord(50)])) == []
        assert subject.is_finished
        assert subject.next_offset == 10


class TestGivenHoles:
    def test_a_hole_begins_a_new_run_and_the_end_is_covered(self) -> None:
        raw = batch([SourceRecord(10), SourceRecord(11), SourceRecord(15)], base_offset=8, last_offset=19)
        (ready,) = fed(assembler(start=8), raw)
        assert ready.source_runs == ((10, 2), (15, 1))
        assert ready.source_next == 20

    def test_a_batch_whose_records_are_all_gone_is_passed_over(self) -> None:
        # Compaction keeps the header of a producer's last batch: count 0, offsets as before.
        raw = with_body(batch([SourceRecord(4)], base_offset=0), b"", count=0)
        (ready,) = fed(assembler(), raw + batch([SourceRecord(5)]))
        assert ready.source_runs == ((5, 1),)


class TestGivenTimestamps:
    def test_log_append_time_becomes_each_records_own_time(self) -> None:
        records = [SourceRecord(0, timestamp=5), SourceRecord(1, timestamp=9)]
        raw = batch(records, codec=LZ4, attributes=LOG_APPEND_TIME, max_timestamp=1_700_000_000_999)
        out = fed(assembler(passthrough_min_bytes=0), raw)
        assert [content[0] for _, content in arrived(out)] == [1_700_000_000_999] * 2

    def test_a_delete_horizon_is_not_taken_for_a_timestamp(self) -> None:
        # KIP-534: with the bit set the base timestamp is the horizon, and records still count from it.
        records = [SourceRecord(0, timestamp=100, value=None), SourceRecord(1, timestamp=90, value=None)]
        raw = bytearray(batch(records, attributes=DELETE_HORIZON))
        out = fed(assembler(passthrough_min_bytes=0), sealed(raw))
        assert arrived(out) == expected(records)


def in_transaction(offset: int, producer_id: int) -> bytes:
    return batch([SourceRecord(offset)], attributes=TRANSACTIONAL, producer_id=producer_id)


class TestGivenTransactions:
    def test_markers_never_arrive_and_leave_a_hole(self) -> None:
        log = [
            batch([SourceRecord(0), SourceRecord(1)], attributes=TRANSACTIONAL, producer_id=7),
            marker(2, 7, abort=False),
            batch([SourceRecord(3)]),
            marker(4, 7, abort=False),
        ]
        subject = assembler(end=5)
        out = fed(subject, b"".join(log))
        assert [offset for offset, _ in arrived(out)] == [0, 1, 3]
        assert out[-1].source_runs[-1] == (3, 1)
        assert subject.is_finished

    def test_aborted_records_are_hidden_when_reading_committed(self, subtests: pytest.Subtests) -> None:
        for case, log, aborted, shown in (
            (
                "two transactions that cross, and one that follows",
                [
                    in_transaction(0, 7),
                    in_transaction(1, 8),
                    batch([SourceRecord(2)]),
                    marker(3, 7, abort=True),
                    in_transaction(4, 7),
                    marker(5, 8, abort=False),
                    marker(6, 7, abort=False),
                ],
                [(7, 0)],
                [1, 2, 4],
            ),
            (
                "a producer that aborts twice in one fetch",
                [
                    in_transaction(0, 7),
                    marker(1, 7, abort=True),
                    in_transaction(2, 7),
                    marker(3, 7, abort=False),
                    in_transaction(4, 7),
                    marker(5, 7, abort=True),
                ],
                [(7, 0), (7, 4)],
                [2],
            ),
            (
                "records outside transactions of the same producer stay",
                [in_transaction(0, 7), batch([SourceRecord(1)], producer_id=7)],
                [(7, 0)],
                [1],
            ),
        ):
            with subtests.test(case=case):
                out = fed(assembler(read_committed=True), b"".join(log), aborted=aborted)
                assert [offset for offset, _ in arrived(out)] == shown

    def test_aborted_records_arrive_and_are_counted_when_reading_uncommitted(self) -> None:
        log = [in_transaction(0, 7), in_transaction(1, 8), marker(2, 7, abort=True), in_transaction(3, 7)]
        subject = assembler(end=5)
        out = fed(subject, b"".join([*log, marker(4, 8, abort=False)]))
        assert [offset for offset, _ in arrived(out)] == [0, 1, 3]
        first = subject.transactions(5)
        assert (first.aborted, first.open) == (1, ((7, 3, 1),))
        # The next run reads the marker.
        following = assembler(start=5, end=6, transactions=first)
        fed(following, marker(5, 7, abort=True))
        assert (following.transactions(6).aborted, following.transactions(6).undecided) == (2, 0)
        # A copy that ends before what it has read, a take-over that finds more on the target, and another beginning.
        assert subject.transactions(2) == TransactionCount(counted_to=2, uncounted=2)
        assert assembler(start=9, transactions=first).transactions(9) == replace(
            first, counted_to=9, open=(), uncounted=5
        )
        assert assembler(start=3, transactions=first).transactions(3).is_empty

    def test_a_transaction_is_counted_once_if_the_range_cuts_its_batch(self) -> None:
        whole = batch([SourceRecord(offset) for offset in range(4)], attributes=TRANSACTIONAL, producer_id=7)
        before = assembler(end=3)
        fed(before, whole)
        after = assembler(start=3, end=5, transactions=before.transactions(3))
        fed(after, whole + marker(4, 7, abort=True))
        assert (before.transactions(3).undecided, after.transactions(5).aborted) == (3, 4)


class TestGivenOldFormats:
    @given(
        magic=st.sampled_from([0, 1]),
        codec=st.sampled_from([NONE, GZIP, SNAPPY]),
        contents=st.lists(
            st.tuples(TIMES, st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9)),
            min_size=1,
            max_size=8,
        ),
        skipped=st.integers(min_value=0, max_value=3),
    )
    @example(magic=1, codec=LZ4, contents=[(1, b"k", b"v"), (2, None, None)], skipped=0)
    def test_messages_become_records(
        self, magic: int, codec: int, contents: list[tuple[int, bytes | None, bytes | None]], skipped: int
    ) -> None:
        records = [SourceRecord(100 + i, *content) for i, content in enumerate(contents)]
        out = fed(assembler(start=100 + skipped), message_set(records, magic=magic, codec=codec))
        times = {record.offset: -1 if magic == 0 else record.timestamp for record in records}
        assert arrived(out) == [
            (record.offset, (times[record.offset], record.key, record.value, ()))
            for record in records
            if record.offset >= 100 + skipped
        ]

    def test_a_log_of_all_three_formats_is_read_in_one_go(self) -> None:
        records = [SourceRecord(i, value=b"%d" % i) for i in range(9)]
        log = message_set(records[:3], magic=0) + message_set(records[3:6], magic=1, codec=GZIP) + batch(records[6:])
        out = fed(assembler(), log)
        assert [content[2] for _, content in arrived(out)] == [b"%d" % i for i in range(9)]

    def test_a_damaged_message_is_told(self) -> None:
        raw = bytearray(message_set([SourceRecord(0)], magic=1))
        raw[-1] ^= 1
        subject = assembler()
        fed(subject, bytes(raw))
        assert isinstance(subject.failure, CorruptBatchError)


class TestGivenTheTargetsLimit:
    @given(CODECS, st.integers(min_value=300, max_value=3_000), st.binary(min_size=150, max_size=150))
    @settings(max_examples=40)
    def test_a_batch_above_it_is_split(self, codec: int, target_max: int, value: bytes) -> None:
        records = [SourceRecord(i, value=value) for i in range(60)]
        out = fed(assembler(passthrough_min_bytes=0, target_max_message_bytes=target_max), batch(records, codec=codec))
        assert all(len(ready.payload) <= target_max for ready in out)
        assert arrived(out) == expected(records)

    def test_one_record_above_it_fails_alone_after_what_precedes_it(self) -> None:
        records = [SourceRecord(0), SourceRecord(1), SourceRecord(2, value=bytes(5_000)), SourceRecord(3)]
        subject = assembler(target_max_message_bytes=1_000)
        out = fed(subject, batch(records))
        assert arrived(out) == expected(records[:2])
        assert isinstance(subject.failure, RecordTooLargeError)
        assert subject.failure.where == Where(topic="orders", partition=3, offset=2)
        assert "1000" in str(subject.failure)
        assert "max.message.bytes" in subject.failure.action
        assert not subject.is_finished
        assert out[-1].source_next == 2

    def test_a_record_that_compresses_below_it_arrives(self) -> None:
        record = SourceRecord(0, value=bytes(5_000))
        assert arrived(fed(assembler(target_max_message_bytes=1_000), batch([record], codec=ZSTD))) == expected(
            [record]
        )


class TestGivenDamage:
    def test_an_impossible_length_is_told(self) -> None:
        raw = bytearray(batch([SourceRecord(0)]))
        struct.pack_into(">i", raw, 8, 3)
        subject = assembler()
        fed(subject, bytes(raw) + bytes(60))
        assert isinstance(subject.failure, CorruptBatchError)

    def test_a_body_that_cannot_be_decompressed_is_told(self, subtests: pytest.Subtests) -> None:
        for codec in (GZIP, SNAPPY, LZ4, ZSTD):
            with subtests.test(codec=codec):
                raw = bytearray(batch([SourceRecord(0), SourceRecord(1)], codec=codec))
                raw[61:] = b"\xff" * (len(raw) - 61)
                subject = assembler(start=1)
                assert fed(subject, sealed(raw)) == []
                assert isinstance(subject.failure, CorruptBatchError)

    def test_a_count_that_is_not_true_is_told(self) -> None:
        raw = bytearray(batch([SourceRecord(0), SourceRecord(1)]))
        struct.pack_into(">i", raw, 57, 3)
        struct.pack_into(">i", raw, 23, 2)
        subject = assembler()
        out = fed(subject, sealed(raw) + batch([SourceRecord(3)]))
        assert isinstance(subject.failure, CorruptBatchError)
        assert subject.failure.where.offset == 0
        assert arrived(out) == []


class TestGivenUnusualHeaders:
    def test_header_names_that_are_no_text_survive_gathering(self) -> None:
        # Java writes any bytes that it was given; this is a record with the one header b"\xff\xfe" -> null.
        tail = b"\x01" + b"\x02v" + b"\x02" + b"\x04\xff\xfe" + b"\x01"
        body = bytes([2 * (3 + len(tail))]) + b"\x00\x00\x00" + tail
        ready = fed(assembler(), with_body(batch([SourceRecord(0)]), body) + batch([SourceRecord(1)]))[0]
        assert bytes(ready.payload[61:]).startswith(body)
        assert ready.count == 2

    def test_control_is_judged_by_its_bit_alone(self) -> None:
        raw = batch([SourceRecord(0)], attributes=CONTROL)
        assert fed(assembler(), raw) == []
