"""Frames in front of keys and values, and in headers (Java `SchemaId`, `DualSchemaIdDeserializer`)."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.schemas.wire import (
    KEY_SCHEMA_HEADER,
    LARGEST_ID,
    VALUE_SCHEMA_HEADER,
    Frame,
    Place,
    ProtobufFrame,
    find_frame,
    frame_bytes,
    protobuf_frame,
    schema_guid,
    schema_id,
)

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
ids = st.integers(1, LARGEST_ID)
message_indexes = st.lists(st.integers(0, LARGEST_ID), min_size=1, max_size=6).map(tuple)


class TestIds:
    def test_given_the_magic_byte_and_four_bytes_then_they_are_the_id_big_endian(self) -> None:
        assert schema_id(b"\x00\x00\x00\x01\x02payload") == 0x0102
        assert schema_id(b"\x00\x7f\xff\xff\xff") == LARGEST_ID

    def test_given_anything_else_then_there_is_no_id_and_no_other_number_is_written(
        self, subtests: pytest.Subtests
    ) -> None:
        for value in [
            None,
            b"",
            b"\x00\x00\x00\x00",
            b"\x01\x00\x00\x00\x07payload",
            b'{"a": 1}',
            b"\x00\x00\x00\x00\x00",
            b"\x00\x80\x00\x00\x00",
        ]:
            assert schema_id(value) is None, value

        for number in [0, -1, LARGEST_ID + 1]:
            with subtests.test(number=number), pytest.raises(ValueError, match="is not a schema id"):
                frame_bytes(number)


class TestGuids:
    def test_given_the_other_magic_byte_then_sixteen_bytes_are_the_guid_and_nothing_else_is(self) -> None:
        framed = b"\x01" + GUID.bytes + b"payload"

        assert schema_guid(framed) == GUID
        assert schema_id(framed) is None
        assert frame_bytes(GUID) + b"payload" == framed

        for value in [None, b"", b"\x01" + GUID.bytes[:15], b"\x00" + GUID.bytes]:
            assert schema_guid(value) is None, value


class TestPlaces:
    def test_given_a_header_then_it_counts_and_not_what_is_in_front_of_the_value(
        self, subtests: pytest.Subtests
    ) -> None:
        both = [(VALUE_SCHEMA_HEADER, frame_bytes(GUID)), (KEY_SCHEMA_HEADER, frame_bytes(9))]
        twice = [(VALUE_SCHEMA_HEADER, frame_bytes(1)), (VALUE_SCHEMA_HEADER, frame_bytes(2))]
        framed = frame_bytes(7) + b"x"
        for case, value, headers, frame in [
            ("no header", framed, [], Frame(7, Place.PREFIX, 5)),
            ("another header", frame_bytes(GUID), [("other", frame_bytes(9))], Frame(GUID, Place.PREFIX, 17)),
            ("headers of both sides", framed, both, Frame(GUID, Place.HEADER, 17)),
            ("of two the last", b"bare", twice, Frame(2, Place.HEADER, 5)),
            ("no content", framed, [(VALUE_SCHEMA_HEADER, None)], Frame(7, Place.PREFIX, 5)),
            ("malformed", framed, [(VALUE_SCHEMA_HEADER, b"\x02who knows")], None),
            ("no frame", b"text", [("trace", b"1")], None),
            ("nothing", None, [], None),
        ]:
            with subtests.test(case):
                assert find_frame(value, headers) == frame
        assert find_frame(framed) == Frame(7, Place.PREFIX, 5)
        assert find_frame(framed, both, key=True) == Frame(9, Place.HEADER, 5)


class TestProtobuf:
    def test_given_indexes_then_they_are_zigzag_varints_and_a_single_zero_is_the_first_message_type(self) -> None:
        assert protobuf_frame(b"\x00\x00\x00\x00\x07\x00payload") == ProtobufFrame(7, (0,), 6)
        assert frame_bytes(7, (0,)) == b"\x00\x00\x00\x00\x07\x00"

        # Two indexes, 1 and 64: 2, 1 and 64 doubled, the last one in two bytes.
        assert frame_bytes(7, (1, 64)) == b"\x00\x00\x00\x00\x07\x04\x02\x80\x01"

        assert protobuf_frame(frame_bytes(7) + b"\x02\x00payload") == ProtobufFrame(7, (0,), 7)

    @given(ids | st.uuids(), message_indexes, st.binary())
    def test_given_any_frame_then_reading_gives_what_was_written(
        self, schema: int | UUID, indexes: tuple[int, ...], payload: bytes
    ) -> None:
        frame = frame_bytes(schema, indexes)

        assert protobuf_frame(frame + payload) == ProtobufFrame(schema, indexes, len(frame))

    def test_given_indexes_of_no_message_type_then_there_is_no_frame_and_none_is_written(
        self, subtests: pytest.Subtests
    ) -> None:
        for indexes in [b"", b"\x02", b"\x01", b"\x02\x01", b"\x80\x80\x80\x80\x80\x01", b"\xfe\xff\xff\xff\x0f"]:
            assert protobuf_frame(frame_bytes(7) + indexes) is None, indexes

        for indexes in [(), (-1,), (LARGEST_ID + 1,)]:
            with subtests.test(indexes=indexes), pytest.raises(ValueError, match="is not a message type"):
                frame_bytes(7, indexes)

    @given(st.binary(max_size=60))
    def test_given_any_bytes_then_reading_ends_within_them(self, content: bytes) -> None:
        frame = protobuf_frame(content)

        assert frame is None or frame.length <= len(content)
