"""MM2's record formats: the bytes are those that Kafka 4.3.1's own classes gave for the same values."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.topics.mm2_formats import Checkpoint, Heartbeat, OffsetSync, RecordFormatError

names = st.text(max_size=60)
partitions = st.integers(min_value=0, max_value=2**31 - 1)
offsets = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def test_a_record_has_the_bytes_that_java_writes(subtests: pytest.Subtests) -> None:
    for record, key, value in (
        (
            OffsetSync("orders", 7, 41, 1_234_567_890_123),
            "00066f726465727300000007",
            "00000000000000290000011f71fb04cb",
        ),
        (
            OffsetSync("zählung", 2**31 - 1, 0, -1),
            "00087ac3a4686c756e677fffffff",
            "0000000000000000ffffffffffffffff",
        ),
        (
            Checkpoint("billing", "A.orders", 3, 100, 97, "note"),
            "000762696c6c696e670008412e6f726465727300000003",
            "00000000000000000064000000000000006100046e6f7465",
        ),
        (Checkpoint("g", "t", 0, 0, 0), "00016700017400000000", "0000000000000000000000000000000000000000"),
        (Heartbeat("A", "B", 1_700_000_000_000), "000141000142", "00000000018bcfe56800"),
    ):
        with subtests.test(key=key):
            assert record.key().hex() == key
            assert record.value().hex() == value
            assert type(record).decode(record.key(), record.value()) == record


@given(
    st.builds(OffsetSync, names, partitions, offsets, offsets)
    | st.builds(Checkpoint, names, names, partitions, offsets, offsets, names)
    | st.builds(Heartbeat, names, names, offsets)
)
def test_any_record_reads_back(record: OffsetSync | Checkpoint | Heartbeat) -> None:
    assert type(record).decode(record.key(), record.value()) == record


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_trailing_bytes_are_ignored(more_key: bytes, more_value: bytes) -> None:
    sync = OffsetSync("orders", 7, 41, 42)
    assert OffsetSync.decode(sync.key() + more_key, sync.value() + more_value) == sync


def test_another_version_is_read_as_version_0() -> None:
    for version in (1, -1, 32_767):
        heartbeat = Heartbeat("A", "B", 5)
        assert (
            Heartbeat.decode(heartbeat.key(), version.to_bytes(2, "big", signed=True) + heartbeat.value()[2:])
            == heartbeat
        ), version


@given(st.integers(min_value=0, max_value=30))
def test_a_record_cut_short_is_an_error_and_nothing_else(length: int) -> None:
    checkpoint = Checkpoint("g1", "topic", 3, 4, 5, "m")
    key, value = checkpoint.key(), checkpoint.value()
    with pytest.raises(RecordFormatError):
        Checkpoint.decode(key[: min(length, len(key) - 1)], value)
    with pytest.raises(RecordFormatError):
        Checkpoint.decode(key, value[: min(length, len(value) - 1)])


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_garbage_is_read_or_refused_with_a_typed_error(key: bytes, value: bytes) -> None:
    for kind in (OffsetSync, Checkpoint, Heartbeat):
        with contextlib.suppress(RecordFormatError):
            kind.decode(key, value)


def test_a_negative_string_length_is_refused() -> None:
    with pytest.raises(RecordFormatError, match="length -1"):
        OffsetSync.decode(b"\xff\xff\x00\x00\x00\x00", bytes(16))


def test_a_tombstone_is_refused() -> None:
    sync = OffsetSync("t", 0, 1, 1)
    with pytest.raises(RecordFormatError, match="offset sync value is null"):
        OffsetSync.decode(sync.key(), None)
    with pytest.raises(RecordFormatError, match="offset sync key is null"):
        OffsetSync.decode(None, sync.value())


def test_a_name_that_does_not_fit_is_refused() -> None:
    assert len(Heartbeat("a" * 32_767, "b", 0).key()) == 32_767 + 2 + 3
    with pytest.raises(RecordFormatError, match="32768 bytes"):
        Heartbeat("a" * 32_768, "b", 0).key()
