"""A fetch as rows of Spark's Kafka source: the records that are read one by one, and nothing that is not exact."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirror_lib.errors import CorruptBatchError, MirrorError, OversizedBatchError, Where
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.read import ArrowPart, read_arrow
from mirror_lib.features.transforms.arrow.rows import KAFKA_SCHEMA, InexactRowError
from mirror_lib.outside_limits import BATCH_BODY_BYTES, BATCH_RECORDS
from mirror_lib.records.records import Record
from mirror_lib.records.spans import read_spans
from mirror_lib.records.varint import decode_varint, encode_varint
from tests.support.records.logs import log, numbered
from tests.support.records.record_batches import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Headers,
    SourceRecord,
    batch,
    marker,
    message_set,
    sealed,
    with_body,
)

DATA = Path(__file__).parent / "data"
NO_END = 1 << 60
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
MEBIBYTE = 1 << 20
#: Batches that are not walked through one by one.
MANY = 150
TIME = 1_700_000_000_000


class Row(NamedTuple):
    """A row, or the record that it must be; without headers, None."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] | None


def read(
    raw: bytes | bytearray,
    aborted: Sequence[tuple[int, int]] = (),
    *,
    start: int = 0,
    end: int = NO_END,
    read_committed: bool = True,
    part_bytes: int = 8 * MEBIBYTE,
) -> list[ArrowPart]:
    parts = list(
        read_arrow(
            memoryview(raw),
            aborted,
            topic="orders",
            partition=3,
            start=start,
            end=end,
            read_committed=read_committed,
            limits=DecodeLimits(part_bytes, part_bytes, BATCH_BODY_BYTES),
        )
    )
    for part in parts:
        part.records.validate(full=True)
        assert part.records.schema.equals(KAFKA_SCHEMA)
    return parts


def fetched(raw: bytes | bytearray, start: int) -> bytes | bytearray:
    """What a broker returns from an offset: its log from the batch on that holds it."""
    position = 0
    for span in read_spans(memoryview(raw), (), read_committed=False)[0]:
        if span.next_offset > start:
            break
        position += 12 + int.from_bytes(raw[position + 8 : position + 12], "big")
    return raw[position:]


def rows(parts: Sequence[ArrowPart]) -> list[Row]:
    found = []
    for part in parts:
        table = part.records
        microseconds = table.column("timestamp").cast(pa.int64()).to_pylist()
        assert all(number % 1000 == 0 for number in microseconds)
        assert set(table.column("topic").to_pylist()) <= {"orders"}
        assert set(table.column("partition").to_pylist()) <= {3}
        headers = [
            None if each is None else tuple((header["key"].encode(), header["value"]) for header in each)
            for each in table.column("headers").to_pylist()
        ]
        found += map(
            Row,
            table.column("offset").to_pylist(),
            (number // 1000 for number in microseconds),
            table.column("key").to_pylist(),
            table.column("value").to_pylist(),
            headers,
        )
    return found


def types(parts: Sequence[ArrowPart]) -> list[int]:
    return [kind for part in parts for kind in part.records.column("timestampType").to_pylist()]


def one_by_one(raw: bytes, aborted: Sequence[tuple[int, int]] = (), *, read_committed: bool = True) -> list[Row]:
    spans, _ = read_spans(memoryview(raw), aborted, read_committed=read_committed)
    return [parsed(record) for span in spans for record in span.records()]


def as_far_as_it_goes(raw: bytes) -> list[Row]:
    """What is read one by one before the first damage, of the offsets that `read` asks for."""
    found = []
    try:
        for span in read_spans(memoryview(raw), (), read_committed=True)[0]:
            found += [parsed(record) for record in span.records()]
    except (ValueError, IndexError, AssertionError):
        pass
    return [each for each in found if 0 <= each.offset < NO_END]


def rows_unless_refused(data: bytes | bytearray) -> list[Row] | None:
    """The rows; None where reading ends with an error of ours."""
    try:
        return rows(read(data))
    except MirrorError:
        return None


def parsed(record: Record) -> Row:
    """A record, field by field."""
    at, tail = 0, record.tail

    def field() -> bytes | None:
        nonlocal at
        length, at = decode_varint(tail, at)
        if length < 0:
            return None
        at += length
        assert at <= len(tail)
        return tail[at - length : at]

    key, value = field(), field()
    count, at = decode_varint(tail, at)
    headers = tuple((field() or b"", field()) for _ in range(count))
    assert at == len(tail)
    return Row(record.offset, record.timestamp, key, value, headers or None)


def row(record: SourceRecord) -> Row:
    headers = tuple((name.encode(), value) for name, value in record.headers)
    return Row(record.offset, record.timestamp, record.key, record.value, headers or None)


def renamed(raw: bytes, name: bytes) -> bytes:
    """An uncompressed batch in which the header name `name` becomes bytes that are no text."""
    assert raw.count(name) == 1
    return sealed(bytearray(raw.replace(name, b"\xff" * len(name))))


TIMES = st.integers(-(2**45), 2**45)
HEADERS = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=150)), max_size=3)
SIZED = st.binary(max_size=20) | st.binary(max_size=20).map(lambda part: part * 500)
CONTENTS = st.tuples(TIMES, st.none() | SIZED, st.none() | SIZED, HEADERS)
SMALL = st.none() | st.binary(max_size=100)
SMALL_CONTENTS = st.tuples(TIMES, SMALL, SMALL, HEADERS)


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[int], bytes]:
    """A partition's batches of all formats, codecs and sizes, with holes and markers, and where each of them begins."""
    raw, bases = b"", []
    offset = draw(st.integers(0, 1 << 33))
    for _ in range(draw(st.integers(1, 6))):
        contents = draw(st.lists(CONTENTS, min_size=1, max_size=5))
        bases.append(offset)
        members: list[SourceRecord] = []
        for timestamp, key, value, headers in contents:
            members.append(SourceRecord(offset, timestamp, key, value, tuple(headers)))
            offset += draw(st.sampled_from([1, 1, 1, 2, 9]))
        match draw(st.sampled_from(["new", "new", "new", "old", "single", "marker"])):
            case "new":
                attributes = draw(st.sampled_from([0, 0, LOG_APPEND_TIME, DELETE_HORIZON, TRANSACTIONAL]))
                raw += batch(members, codec=draw(st.integers(0, 4)), last_offset=offset - 1, attributes=attributes)
            case "old":
                magic = draw(st.sampled_from([0, 1]))
                codec = draw(st.sampled_from([NONE, GZIP, SNAPPY, LZ4][: 3 + magic]))
                dense = [replace(each, offset=members[0].offset + n) for n, each in enumerate(members)]
                raw += message_set(
                    [replace(each, timestamp=abs(each.timestamp)) for each in dense], magic=magic, codec=codec
                )
            case "single":
                raw += log(members, [1] * len(members), codec=draw(st.sampled_from([NONE, LZ4, SNAPPY])))
            case "marker":
                raw += marker(members[0].offset, 5, abort=False)
        offset += draw(st.sampled_from([0, 0, 4]))
    return bases, raw


class TestWhatIsRead:
    @given(log=logs(), part_bytes=st.sampled_from([1, 200, 20_000, MEBIBYTE]))
    def test_any_mixture_of_batches_gives_the_records_that_are_read_one_by_one(
        self, log: tuple[list[int], bytes], part_bytes: int
    ) -> None:
        bases, raw = log
        last = read_spans(memoryview(raw), (), read_committed=True)[0][-1].next_offset
        parts: list[ArrowPart] = []
        position = bases[0]

        # A fetch of old formats that become too much is read in part, and the rest with the next fetch.
        while position < last:
            more = read(fetched(raw, position), start=position, part_bytes=part_bytes)
            assert position < more[-1].next_offset
            position = more[-1].next_offset
            parts += more

        assert rows(parts) == one_by_one(raw)
        assert position == last

    @settings(max_examples=30)
    @given(
        contents=st.lists(SMALL_CONTENTS, min_size=1, max_size=5),
        size=st.integers(1, 4),
        codec=st.integers(0, 4),
        attributes=st.sampled_from([0, LOG_APPEND_TIME]),
    )
    def test_very_many_batches_are_read_together(
        self,
        contents: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
        size: int,
        codec: int,
        attributes: int,
    ) -> None:
        records = []
        for number in range(MANY * size):
            timestamp, key, value, headers = contents[number % len(contents)]
            records.append(SourceRecord(number, timestamp, key, value, tuple(headers)))
        raw = log(records, [size] * MANY, codec=codec, attributes=attributes)

        assert rows(read(raw, part_bytes=100_000)) == one_by_one(raw)

    def test_a_batch_of_very_many_records_is_read_whole(self) -> None:
        records = [replace(each, value=b"v" * (number % 700)) for number, each in enumerate(numbered(5_000))]

        parts = read(batch(records, codec=ZSTD))

        assert rows(parts) == [row(record) for record in records]

    def test_fields_of_every_length_are_read(self, subtests: pytest.Subtests) -> None:
        for length in (0, 1, 63, 64, 8_191, 8_192, 1_048_575, 1_048_576):
            with subtests.test(length=length):
                records = [SourceRecord(number, key=b"k" * length, value=b"v" * length) for number in range(3)]
                headed = [replace(each, headers=(("h", b"x" * length), ("h", b"x" * length))) for each in records]

                assert rows(read(batch(records))) == [row(record) for record in records]
                assert rows(read(batch(headed, codec=GZIP))) == [row(record) for record in headed]

    def test_times_before_the_epoch_and_without_meaning_stay_what_they_are(self) -> None:
        for timestamp in (-1, -2, -1_001, 0, -(2**63 // 1000) + 1, 2**63 // 1000):
            (found,) = rows(read(batch([SourceRecord(0, timestamp)])))

            assert found.timestamp == timestamp, timestamp

    def test_the_columns_are_those_that_spark_makes_of_its_own_source(self) -> None:
        sql = import_module("pyspark.sql.types")
        to_arrow_schema = import_module("pyspark.sql.pandas.types").to_arrow_schema
        header = sql.StructType([sql.StructField("key", sql.StringType()), sql.StructField("value", sql.BinaryType())])
        columns = {
            "key": sql.BinaryType(),
            "value": sql.BinaryType(),
            "topic": sql.StringType(),
            "partition": sql.IntegerType(),
            "offset": sql.LongType(),
            "timestamp": sql.TimestampType(),
            "timestampType": sql.IntegerType(),
            "headers": sql.ArrayType(header),
        }
        schema = sql.StructType([sql.StructField(name, kind) for name, kind in columns.items()])

        assert to_arrow_schema(schema, timezone="UTC").equals(KAFKA_SCHEMA, check_metadata=True)

    def test_rows_do_not_change_when_the_buffer_of_the_fetch_is_used_again(self) -> None:
        raw = bytearray(log(numbered(20), [5]))
        parts = read(raw)

        raw[:] = bytes(len(raw))

        assert rows(parts) == [row(record) for record in numbered(20)]


class TestTypesOfTimestamps:
    def test_a_broker_s_time_is_told_from_a_client_s(self) -> None:
        raw = log(numbered(2)) + log(numbered(2, first=2), attributes=LOG_APPEND_TIME, codec=LZ4)

        parts = read(raw)

        assert types(parts) == [0, 0, 1, 1]
        assert [each.timestamp for each in rows(parts)] == [TIME, TIME + 7, TIME + 7, TIME + 7]

    def test_messages_of_magic_0_have_none(self) -> None:
        parts = read(message_set(numbered(3), magic=0))

        assert types(parts) == [-1, -1, -1]
        assert [each.timestamp for each in rows(parts)] == [-1, -1, -1]

    def test_messages_of_magic_1_have_that_of_the_outer_message(self, subtests: pytest.Subtests) -> None:
        for codec in (NONE, GZIP):
            with subtests.test(codec=codec):
                raw = bytearray(message_set(numbered(1), magic=1, codec=codec))
                assert types(read(raw)) == [0]

                raw[17] |= LOG_APPEND_TIME
                struct.pack_into(">I", raw, 12, zlib.crc32(raw[16:]))

                assert types(read(raw)) == [1]


class TestOffsets:
    @given(log=logs(), data=st.data())
    def test_only_what_is_asked_for_is_read_and_reading_goes_on_behind_it(
        self, log: tuple[list[int], bytes], data: st.DataObject
    ) -> None:
        bases, raw = log
        expected = one_by_one(raw)
        last = read_spans(memoryview(raw), (), read_committed=True)[0][-1].next_offset
        start = data.draw(st.integers(bases[0], last))
        end = data.draw(st.integers(start, last + 3))
        found: list[Row] = []
        position = start

        while position < min(end, last):
            step = min(end, position + data.draw(st.integers(1, 12)))
            size = data.draw(st.sampled_from([1, 1000]))
            parts = read(fetched(raw, position), start=position, end=step, part_bytes=size)
            found += rows(parts)
            assert position < parts[-1].next_offset <= step
            position = parts[-1].next_offset

        assert found == [each for each in expected if start <= each.offset < end]

    def test_each_part_says_where_to_go_on_once_it_is_done(self) -> None:
        raw = log(numbered(3)) + marker(3, 5, abort=False) + log(numbered(3, first=8)) + marker(11, 5, abort=False)

        parts = read(raw, part_bytes=1)

        assert [part.records.num_rows for part in parts] == [1] * 6
        assert [part.next_offset for part in parts] == [1, 2, 4, 9, 10, 12]

    def test_parts_are_no_larger_than_they_may_be_unless_one_row_is(self) -> None:
        records = [replace(each, value=b"v" * 1_000) for each in numbered(50)]
        records[20] = replace(records[20], value=b"v" * 9_000)

        parts = read(log(records, [7] * 8, codec=SNAPPY), part_bytes=5_000)

        assert rows(parts) == [row(record) for record in records]
        assert max(part.records.num_rows for part in parts) == 4
        assert all(part.records.nbytes < 5_000 or part.records.num_rows == 1 for part in parts)

    def test_an_incomplete_batch_is_left_to_the_next_fetch(self) -> None:
        raw = log(numbered(4), [2, 2])

        assert [part.next_offset for part in read(raw[:-1])] == [2]
        assert read(raw[:70]) == read(raw[:5]) == read(b"") == []

    def test_where_the_wanted_offsets_are_missing_nothing_is_read_and_reading_is_done(self) -> None:
        (part,) = read(log(numbered(3, first=50)), start=10, end=20)

        assert (part.records.num_rows, part.next_offset) == (0, 20)


class TestTransactions:
    RAW = (
        b"".join(
            batch(numbered(1, first=offset), attributes=TRANSACTIONAL, producer_id=offset % 2) for offset in range(20)
        )
        + marker(20, 0, abort=True)
        + marker(21, 1, abort=False)
    )

    def test_rows_are_hidden_where_stretches_are(self, subtests: pytest.Subtests) -> None:
        for aborted, read_committed in (((), True), (((0, 0),), True), (((0, 0),), False), (((1, 7), (0, 4)), True)):
            with subtests.test(aborted=aborted, read_committed=read_committed):
                parts = read(self.RAW, aborted, read_committed=read_committed)

                assert rows(parts) == one_by_one(self.RAW, aborted, read_committed=read_committed)
                assert parts[-1].next_offset == 22

    def test_where_all_is_hidden_or_gone_reading_goes_on_behind_it(self) -> None:
        compacted = with_body(batch(numbered(1, first=7), last_offset=8), b"", count=0)
        for raw in (marker(7, 5, abort=False) + marker(8, 5, abort=True), compacted):
            (part,) = read(raw, start=7)

            assert (part.records.num_rows, part.next_offset) == (0, 9)


class TestDamage:
    def test_what_stands_before_it_comes_first_and_then_the_error(self, subtests: pytest.Subtests) -> None:
        for place in (30, 70):
            with subtests.test(place=place):
                bad = bytearray(log(numbered(3, first=4)))
                bad[place] ^= 1
                raw = log(numbered(4), [2, 2]) + bytes(bad) + log(numbered(3, first=7))

                assert [each.offset for each in rows(read(raw))] == [0, 1, 2, 3]
                with pytest.raises(CorruptBatchError) as caught:
                    read(raw[raw.index(bytes(bad)) :], start=4)
                assert caught.value.where == Where(topic="orders", partition=3, offset=4)

    def test_a_body_that_is_not_what_its_header_says_does_not_spoil_the_batches_before_it(
        self, subtests: pytest.Subtests
    ) -> None:
        for change in ({61: 0x7F}, {61: 0x01}, {60: 9}, {57: 0xFF}, {65: 0x7E}, {71: 0x7E}):
            with subtests.test(change=change):
                odd = bytearray(log(numbered(1, first=20)))
                for place, octet in change.items():
                    odd[place] = octet
                raw = log(numbered(20), [1] * 20) + sealed(odd) + log(numbered(1, first=21))

                parts = read(raw)

                assert rows(parts) == [row(record) for record in numbered(20)]
                assert parts[-1].next_offset == 20
                with pytest.raises(CorruptBatchError):
                    read(sealed(odd), start=20)

    # Offsets that do not ascend, before a batch whose offset is negative.
    @example(raw=b"", flips={0: 1, 1350: 128})
    @given(raw=st.binary(max_size=200), flips=st.dictionaries(st.integers(0, 2_500), st.integers(0, 255), max_size=3))
    def test_whatever_arrives_no_row_is_read_that_is_no_record(self, raw: bytes, flips: dict[int, int]) -> None:
        data = bytearray(log(numbered(20), [1] * 20, codec=LZ4) + raw)
        for place, octet in flips.items():
            data[place % len(data)] = octet

        found = rows_unless_refused(data)

        assert found is None or found == as_far_as_it_goes(bytes(data))[: len(found)]

    @given(body=st.binary(min_size=1, max_size=40), count=st.integers(-1, 5), copies=st.sampled_from([1, MANY]))
    def test_whatever_a_body_holds_it_is_records_or_an_error(self, body: bytes, count: int, copies: int) -> None:
        raw = with_body(batch(numbered(1)), body, count=count)
        data = b"".join(struct.pack(">q", 10 * number) + raw[8:] for number in range(copies))

        found = rows_unless_refused(data)

        assert found is None or found == as_far_as_it_goes(data)[: len(found)]

    @given(tail=st.binary(min_size=3, max_size=30), copies=st.sampled_from([1, MANY]))
    def test_whatever_a_record_holds_it_is_a_row_or_an_error(self, tail: bytes, copies: int) -> None:
        raw = with_body(batch(numbered(1)), encode_varint(len(tail) + 3) + b"\0\0\0" + tail)
        data = b"".join(struct.pack(">q", number) + raw[8:] for number in range(copies))

        found = rows_unless_refused(data)

        assert found is None or found == one_by_one(data)


class TestWhatIsTooLarge:
    @staticmethod
    @cache
    def oversized() -> bytes:
        """Some kilobytes of zeros: valid, and more than the bound when they are decompressed."""
        members = [
            SourceRecord(5 + number, value=bytes(MEBIBYTE)) for number in range(BATCH_BODY_BYTES // MEBIBYTE + 8)
        ]
        return batch(members, codec=ZSTD)

    def test_a_batch_that_would_fill_the_memory_is_an_error_after_what_stands_before_it(self) -> None:
        parts = read(log(numbered(5)) + self.oversized())

        assert (len(rows(parts)), parts[-1].next_offset) == (5, 5)
        with pytest.raises(OversizedBatchError) as caught:
            read(self.oversized(), start=5)
        assert caught.value.where.offset == 5
        # One that is not asked for is not looked at.
        parts = read(log(numbered(5)) + self.oversized(), end=5)
        assert (len(rows(parts)), parts[-1].next_offset) == (5, 5)

    def test_so_is_a_batch_of_more_records_than_anybody_looks_at(self) -> None:
        count = BATCH_RECORDS + 1

        with pytest.raises(OversizedBatchError, match=str(BATCH_RECORDS)):
            read(with_body(batch(numbered(1)), bytes(count), count=count))


class TestWhatIsNoExactRow:
    def test_a_header_name_that_is_no_text_is_an_error_after_the_rows_before_it(self) -> None:
        records = numbered(6)
        headers: Headers = (("first", b"1"), ("strange", b"2"))
        records[3] = replace(records[3], headers=headers)
        raw = renamed(log(records), b"strange")

        before = read(raw)
        with pytest.raises(InexactRowError) as caught:
            read(raw, start=3)
        behind = read(raw, start=4)

        assert rows(before) == [row(record) for record in records[:3]]
        assert before[-1].next_offset == caught.value.where.offset == 3
        assert "UTF-8" in str(caught.value)
        assert rows(behind) == [row(record) for record in records[4:]]

    def test_so_is_a_time_that_microseconds_cannot_say(self, subtests: pytest.Subtests) -> None:
        for timestamp in (2**62, -(2**62)):
            with subtests.test(timestamp=timestamp):
                raw = batch([SourceRecord(0), SourceRecord(1, timestamp)])

                assert len(rows(read(raw))) == 1
                with pytest.raises(InexactRowError, match=str(timestamp)) as caught:
                    read(raw, start=1)
                assert caught.value.where.offset == 1


def test_what_java_writes_is_read_as_one_by_one() -> None:
    for name in sorted(path.stem for path in DATA.glob("*.bin") if path.stem != "magic-0-lz4"):
        raw = (DATA / f"{name}.bin").read_bytes()

        assert rows(read(raw)) == one_by_one(raw), name


def test_control_batches_of_any_kind_are_no_rows() -> None:
    raw = batch(numbered(2), attributes=CONTROL)

    assert rows(read(raw, read_committed=False)) == []
