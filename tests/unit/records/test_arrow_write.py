"""Rows of a DataFrame as batches for the target: byte for byte what is built record by record, and never too large."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.errors import RecordTooLargeError
from mirror_lib.features.transforms.arrow.rows import HEADERS_TYPE, InexactRowError
from mirror_lib.features.transforms.arrow.write import ArrowBatchBuilder
from mirror_lib.records.builder import BatchBuilder
from mirror_lib.records.compression.codecs import decompress
from mirror_lib.records.header import CODEC_BITS, HEADER_SIZE, Codec, parse_header
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record, encode_record
from mirror_lib.records.stamping import stamp
from mirror_lib.records.varint import encode_varint
from tests.support.records.logs import numbered
from tests.support.records.record_batches import SourceRecord, content, read_with_aiokafka, read_with_kafka_python

MEBIBYTE = 1 << 20
TIME = 1_700_000_000_000
CODECS = st.sampled_from(list(Codec))


def columns(records: Sequence[SourceRecord]) -> dict[str, Any]:
    """Rows as Spark hands them over: one for each record, whose offset is the source's."""
    return {
        "keys": pa.array([record.key for record in records], pa.binary()),
        "values": pa.array([record.value for record in records], pa.binary()),
        "headers": pa.array(
            [[{"key": name, "value": value} for name, value in each.headers] or None for each in records], HEADERS_TYPE
        ),
        "timestamps": pa.array([record.timestamp for record in records], pa.int64()),
        "source_offsets": pa.array([record.offset for record in records], pa.int64()),
    }


def builder(codec: Codec = Codec.NONE, *, batch_max: int = MEBIBYTE, max_message: int = MEBIBYTE) -> ArrowBatchBuilder:
    return ArrowBatchBuilder(codec, batch_max_bytes=batch_max, max_message_bytes=max_message)


def written(
    subject: ArrowBatchBuilder, *feeds: Sequence[SourceRecord], source_next: int | None = None
) -> list[ReadyBatch]:
    """Feed all rows, then flush."""
    ready = [batch for records in feeds for batch in subject.feed(**columns(records))]
    return ready + list(subject.flush(source_next))


def contents(ready: Sequence[ReadyBatch]) -> list[tuple[object, ...]]:
    """What two readers of others find in the batches."""
    found: list[tuple[object, ...]] = []
    for batch in ready:
        stamp(batch, 4711, 7, 0)
        records = list(read_with_kafka_python(batch.payload))
        assert records == list(read_with_aiokafka(batch.payload))
        assert [record[0] for record in records] == list(range(batch.count))
        found += [record[1:] for record in records]
    return found


def sources(batch: ReadyBatch) -> list[int]:
    return [offset for first, count in batch.source_runs for offset in range(first, first + count)]


def record(source: SourceRecord) -> Record:
    """A record whose tail is encoded field by field (KIP-82, KIP-98)."""

    def field(octets: bytes | None) -> bytes:
        return encode_varint(-1) if octets is None else encode_varint(len(octets)) + octets

    headers = b"".join(field(name.encode()) + field(value) for name, value in source.headers)
    tail = field(source.key) + field(source.value) + encode_varint(len(source.headers)) + headers
    return Record(source.offset, source.timestamp, tail)


def body_size(batch: ReadyBatch) -> int:
    codec = parse_header(batch.payload).attributes & CODEC_BITS
    return len(decompress(codec, memoryview(batch.payload)[HEADER_SIZE:]))


SIZED = st.binary(max_size=20) | st.binary(max_size=20).map(lambda part: part * 500)
CONTENTS = st.tuples(
    st.integers(-(2**45), 2**45),
    st.none() | SIZED,
    st.none() | SIZED,
    st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=80)), max_size=3),
)


@st.composite
def records_in_order(draw: st.DrawFn, steps: tuple[int, ...] = (1, 1, 1, 2, 9)) -> list[SourceRecord]:
    """Records that ascend by these steps; with a step of 0, several of one offset."""
    offset, records = draw(st.integers(0, 1 << 33)), []
    for timestamp, key, value, headers in draw(st.lists(CONTENTS, min_size=1, max_size=20)):
        records.append(SourceRecord(offset, timestamp, key, value, tuple(headers)))
        offset += draw(st.sampled_from(steps))
    return records


@st.composite
def feeds(draw: st.DrawFn, steps: tuple[int, ...] = (1, 1, 1, 2, 9)) -> list[list[SourceRecord]]:
    """Records in order, cut anywhere."""
    records = draw(records_in_order(steps))
    cuts = sorted(draw(st.lists(st.integers(0, len(records)), max_size=3)))
    return [records[start:stop] for start, stop in pairwise([0, *cuts, len(records)])]


class TestWhatIsWritten:
    @given(parts=feeds(), codec=CODECS, batch_max=st.sampled_from([300, 5_000, MEBIBYTE]))
    def test_it_is_byte_for_byte_what_is_built_record_by_record(
        self, parts: list[list[SourceRecord]], codec: Codec, batch_max: int
    ) -> None:
        records = [each for part in parts for each in part]

        ready = written(builder(codec, batch_max=batch_max), *parts)

        start = 0
        for batch in ready:
            expected = BatchBuilder(codec)
            for each in records[start : start + batch.count]:
                expected.add(record(each))
            assert content(batch) == content(expected.build(MEBIBYTE))
            start += batch.count
        assert start == len(records)

    @given(parts=feeds((0, 1, 1, 2)), codec=CODECS, batch_max=st.sampled_from([300, 5_000]))
    def test_it_is_the_same_however_the_rows_are_cut_into_feeds(
        self, parts: list[list[SourceRecord]], codec: Codec, batch_max: int
    ) -> None:
        at_once = written(builder(codec, batch_max=batch_max), [each for part in parts for each in part])

        assert list(map(content, written(builder(codec, batch_max=batch_max), *parts))) == list(map(content, at_once))

    @given(parts=feeds((0, 1, 2)), codec=CODECS, batch_max=st.sampled_from([300, 5_000, MEBIBYTE]))
    def test_others_read_the_records_that_were_written(
        self, parts: list[list[SourceRecord]], codec: Codec, batch_max: int
    ) -> None:
        records = [each for part in parts for each in part]

        ready = written(builder(codec, batch_max=batch_max), *parts)

        assert contents(ready) == [each.content for each in records]
        assert [offset for batch in ready for offset in sources(batch)] == [each.offset for each in records]
        for batch in ready:
            header = parse_header(batch.payload)
            assert (header.base_offset, header.magic, header.attributes & ~CODEC_BITS) == (0, 2, 0)
            assert header.count == batch.count == header.last_offset_delta + 1
            assert header.length == len(batch.payload) - 12
            assert header.first_timestamp == batch.first_timestamp
            assert header.max_timestamp == batch.max_timestamp

    def test_very_many_records_of_all_lengths_are_written_whole(self) -> None:
        records = [replace(each, value=b"v" * (number % 300)) for number, each in enumerate(numbered(20_000))]

        ready = written(builder(Codec.LZ4), records)

        assert contents(ready) == [each.content for each in records]

    def test_fields_of_every_length_are_written(self, subtests: pytest.Subtests) -> None:
        for length in (0, 1, 63, 64, 8_191, 8_192, 1_048_575, 1_048_576):
            with subtests.test(length=length):
                octets = b"x" * length
                records = [SourceRecord(0, TIME, octets, octets, (("h", octets), ("h" * min(length, 9_000), None)))]

                (batch,) = written(builder(max_message=16 * MEBIBYTE), records)

                assert contents([batch]) == [each.content for each in records]


class TestSizes:
    def test_a_batch_takes_as_many_rows_as_fit(self) -> None:
        records = numbered(2_000)

        ready = written(builder(batch_max=3_000), records)

        assert all(len(batch.payload) <= 3_000 for batch in ready)
        starts = [batch.source_runs[0][0] for batch in ready]
        for batch, following in zip(ready, starts[1:], strict=False):
            shift = records[following].timestamp - batch.first_timestamp
            more = encode_record(record(records[following]), offset_delta=batch.count, timestamp_delta=shift)
            assert len(batch.payload) + len(more) > 3_000

    @settings(max_examples=40)
    @given(
        seed=st.integers(0, 1 << 30),
        codec=st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]),
        repeated=st.booleans(),
    )
    def test_what_does_not_become_small_enough_is_parted(self, seed: int, codec: Codec, repeated: bool) -> None:
        chance = random.Random(seed)
        records = [
            replace(each, value=chance.randbytes(chance.randrange(1_500)), offset=each.offset // (2 if repeated else 1))
            for each in numbered(300)
        ]

        ready = written(builder(codec, batch_max=100_000, max_message=8_000), records[:200], records[200:])

        assert contents(ready) == [each.content for each in records]
        assert all(len(batch.payload) <= 8_000 for batch in ready)
        assert all(left.source_next <= right.source_runs[0][0] for left, right in pairwise(ready))
        # Once that is known, batches are filled as they can be.
        assert sum(len(batch.payload) for batch in ready[-11:-1]) > 10 * 5_000

    def test_what_becomes_small_is_not_parted(self) -> None:
        records = [replace(each, value=b"v" * 1_000) for each in numbered(95)]

        (batch,) = written(builder(Codec.ZSTD, batch_max=100_000, max_message=8_000), records)

        assert batch.count == 95
        assert 90_000 < body_size(batch) <= 100_000

    def test_a_row_that_is_too_large_is_an_error_that_names_its_source_offset_after_what_stands_before_it(self) -> None:
        records = numbered(10)
        records[7] = replace(records[7], value=bytes(2_000))
        subject = builder(batch_max=10_000, max_message=1_000)
        ready: list[ReadyBatch] = []

        with pytest.raises(RecordTooLargeError, match="accepts at most 1000") as caught:
            ready.extend(subject.feed(**columns(records)))

        assert caught.value.where.offset == 7
        assert sum(batch.count for batch in ready) == 7

    def test_a_row_that_is_too_large_until_it_is_compressed_is_none(self) -> None:
        records = numbered(3)
        records[1] = replace(records[1], value=bytes(20_000))

        ready = written(builder(Codec.ZSTD, batch_max=1_000, max_message=1_000), records)

        assert contents(ready) == [each.content for each in records]
        assert [batch.count for batch in ready] == [1, 1, 1]

    def test_what_compression_enlarges_goes_uncompressed_where_it_fits_no_other_way(self) -> None:
        octets = random.Random(7).randbytes(929)
        limit = HEADER_SIZE + len(
            encode_record(record(SourceRecord(0, value=octets)), offset_delta=0, timestamp_delta=0)
        )

        (batch,) = written(builder(Codec.GZIP, max_message=limit), [SourceRecord(0, value=octets)])

        assert parse_header(batch.payload).attributes == Codec.NONE
        assert len(batch.payload) == limit


class TestSourceOffsets:
    @staticmethod
    def at(*offsets: int, size: int = 10) -> list[SourceRecord]:
        return [SourceRecord(offset, value=b"v" * size) for offset in offsets]

    def test_offsets_in_a_row_are_one_run_and_rows_of_one_offset_runs_of_their_own(self) -> None:
        (ascending,) = written(builder(), self.at(5, 6, 7, 10, 11, 20))
        (repeated,) = written(builder(), self.at(5, 6, 6, 6), self.at(6, 7, 8, 10, 10))

        assert ascending.source_runs == ((5, 3), (10, 2), (20, 1))
        assert ascending.source_next == 21
        assert repeated.source_runs == ((5, 1), (6, 1), (6, 1), (6, 1), (6, 1), (7, 2), (10, 1), (10, 1))
        assert repeated.count == 9

    def test_the_caller_may_know_that_the_source_goes_on_later(self) -> None:
        ready = written(builder(batch_max=100), self.at(5, 6, 7, 9, 11), source_next=40)

        assert [batch.source_next for batch in ready] == [7, 10, 40]

    def test_a_batch_ends_between_two_source_offsets_unless_one_fills_more_than_a_batch(self) -> None:
        for first, second, expected in (
            ((1, 2, 3, 3), (4, 5, 5, 5, 8), [([1, 2], 3), ([3, 3, 4], 5), ([5, 5, 5], 6), ([8], 9)]),
            # Reading goes on at it.
            ((1, 2, 2), (2, 2, 2, 3), [([1], 2), ([2, 2, 2], 2), ([2, 2, 3], 4)]),
        ):
            ready = written(builder(batch_max=61 + 3 * 18), self.at(*first), self.at(*second))

            assert [(sources(batch), batch.source_next) for batch in ready] == expected

    def test_nothing_fed_is_nothing_written(self) -> None:
        assert written(builder(), []) == []

    def test_after_a_flush_it_goes_on(self) -> None:
        subject = builder()

        first, second = written(subject, self.at(1, 2)), written(subject, self.at(2, 3))

        assert [sources(batch) for batch in (*first, *second)] == [[1, 2], [2, 3]]

    def test_offsets_that_descend_are_refused(self, subtests: pytest.Subtests) -> None:
        for offsets in (((5, 4),), ((5, 6), (5,))):
            with subtests.test(offsets=offsets), pytest.raises(ValueError, match="descend"):
                written(builder(), *(self.at(*each) for each in offsets))


class TestColumnsOfOtherShapes:
    def feed(self, **other: pa.Array) -> list[tuple[object, ...]]:
        records = [SourceRecord(number, key=b"k%d" % number) for number in range(3)]
        subject = builder()
        return contents([*subject.feed(**{**columns(records), **other}), *subject.flush()])

    def test_text_and_large_columns_are_taken(self) -> None:
        for kind in (pa.string(), pa.large_string(), pa.large_binary()):
            found = self.feed(values=pa.array(["a", None, ""], pa.string()).cast(kind))

            assert [each[2] for each in found] == [b"a", None, b""], kind

    def test_columns_without_any_value_are_nulls(self) -> None:
        found = self.feed(keys=pa.nulls(3), values=pa.nulls(3), headers=pa.nulls(3))

        assert found == [(TIME, None, None, ())] * 3

    def test_timestamps_of_all_units_are_the_same_moment(self, subtests: pytest.Subtests) -> None:
        for unit, factor in (("s", 0.001), ("ms", 1), ("us", 1_000), ("ns", 1_000_000)):
            for zone in (None, "UTC", "Asia/Tokyo"):
                with subtests.test(unit=unit, zone=zone):
                    moments = [TIME, -1_000, 0]
                    numbers = [int(moment * factor) for moment in moments]

                    found = self.feed(timestamps=pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, tz=zone)))

                    assert [each[0] for each in found] == moments

    def test_what_is_finer_than_milliseconds_is_cut_off_as_spark_does(self) -> None:
        found = self.feed(timestamps=pa.array([1_999, -1, -1_000], pa.int64()).cast(pa.timestamp("us", tz="UTC")))

        assert [each[0] for each in found] == [1, -1, -1]

    def test_what_lies_behind_a_null_is_not_written(self) -> None:
        first_is_null = pa.py_buffer(b"\x06")
        value_edges, list_edges = (pa.py_buffer(struct.pack("=4i", *each)) for each in ((0, 6, 10, 10), (0, 1, 1, 2)))
        values = pa.Array.from_buffers(pa.binary(), 3, [first_is_null, value_edges, pa.py_buffer(b"hiddenseen")])
        entries = pa.array([{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}], HEADERS_TYPE.value_type)
        lists = pa.Array.from_buffers(HEADERS_TYPE, 3, [first_is_null, list_edges], children=[entries])

        found = self.feed(values=values, headers=lists)

        assert [each[2:] for each in found] == [(None, ()), (b"seen", ()), (b"", (("b", b"2"),))]

    def test_a_part_of_a_table_is_written_as_that_part(self) -> None:
        records = [replace(each, key=None if each.offset % 3 else b"k") for each in numbered(30)]
        records[12] = replace(records[12], headers=(), value=None)
        whole = columns(records)
        subject = builder()

        ready = [*subject.feed(**{name: column.slice(11, 9) for name, column in whole.items()}), *subject.flush()]

        assert contents(ready) == [each.content for each in records[11:20]]
        assert sources(ready[0]) == list(range(11, 20))


class TestWhatIsNoRecord:
    def test_a_row_without_a_time_is_an_error_that_names_its_source_offset(self) -> None:
        rows = columns(numbered(4, first=50))
        rows["timestamps"] = pa.array([1, 2, None, 4], pa.int64())

        with pytest.raises(InexactRowError, match="no timestamp") as caught:
            list(builder().feed(**rows))

        assert caught.value.where.offset == 52

    def test_so_is_a_header_without_a_name(self, subtests: pytest.Subtests) -> None:
        for header in ({"key": None, "value": b"v"}, None):
            with subtests.test(header=header):
                rows = columns(numbered(4, first=50))
                good = {"key": "k", "value": None}
                rows["headers"] = pa.array([[good], None, [good, good], [good, header]], HEADERS_TYPE)

                with pytest.raises(InexactRowError, match="no name") as caught:
                    list(builder().feed(**rows))

                assert caught.value.where.offset == 53

    def test_a_row_of_unknown_origin_is_refused(self) -> None:
        rows = columns(numbered(2))
        rows["source_offsets"] = pa.array([1, None], pa.int64())

        with pytest.raises(ValueError, match="missing"):
            list(builder().feed(**rows))


_WRITING = """\
import sys
import numpy as np
import pyarrow as pa
from mirror_lib.features.transforms.arrow.read import read_arrow
from mirror_lib.features.transforms.arrow.write import ArrowBatchBuilder
from tests.support.records.logs import log, numbered

(part,) = read_arrow(memoryview(log(numbered(3))), (), topic="t", partition=0, start=0, end=9, read_committed=True)
key, value, _, _, offset, timestamp, _, headers = part.records.columns
subject = ArrowBatchBuilder(0, batch_max_bytes=9999, max_message_bytes=9999)
ready = [*subject.feed(keys=key, values=value, headers=headers, timestamps=timestamp, source_offsets=offset)]
print(sum(batch.count for batch in [*ready, *subject.flush()]), "pandas" in sys.modules)
"""


def test_reading_and_writing_do_not_load_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", _WRITING], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["3", "False"]
