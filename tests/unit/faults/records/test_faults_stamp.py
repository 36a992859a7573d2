"""Stamps: read back as written, and no change of a record goes unseen."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tools.faults.records.stamp import Content, Stamp


@given(st.integers(0, 99), st.integers(0, 10**9), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_stamp_is_read_back_as_written(producer: int, sequence: int, end: bool, checksum: int) -> None:
    stamp = Stamp(producer, sequence, end, checksum)

    assert Stamp.decode(stamp.encode()) == stamp


def test_nothing_and_empty_differ_and_bytes_cannot_move_from_the_key_to_the_value() -> None:
    content = Content("orders", 0, 0, None, b"", (("name", None),))
    moved = Content("orders", 0, 0, b"ab", b"c", ())

    contents = (
        content,
        replace(content, key=b""),
        replace(content, value=None),
        replace(content, headers=(("name", b""),)),
        replace(content, headers=()),
        moved,
        replace(moved, key=b"a", value=b"bc"),
    )
    assert len({each.checksum(1, 2, end=False) for each in contents}) == len(contents)


def test_the_checksum_covers_the_identity() -> None:
    content = Content("orders", 0, 0, b"k", b"v", ())

    stamps = [content.stamp(1, 2), content.stamp(2, 2), content.stamp(1, 3), content.stamp(1, 2, end=True)]
    assert len({stamp.checksum for stamp in stamps}) == 4
