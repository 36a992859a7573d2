"""Finds records in a body that arrives in pieces.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mirror_lib.features.transforms.arrow.record_blocks import Int64s
from mirror_lib.records.records import RecordError
from mirror_lib.records.varint import decode_varint

#: Maximum bytes of a record's length, attributes and both deltas.
_LONGEST_BEGINNING = 31
_ONE_BYTE = 0x80


class Found(NamedTuple):
    """Whole records: the start of each after its length, and its end."""

    content: bytes
    starts: Int64s
    ends: Int64s


class Giant(NamedTuple):
    """A record that is too large to be held; it is skipped."""

    size: int
    offset_delta: int


class _Walked(NamedTuple):
    starts: list[int]
    ends: list[int]
    #: The start of the next record, before its length, and the number of bytes needed from there on.
    position: int
    needed: int


def record_pieces(
    body: Iterable[bytes], count: int, *, at_once: int, piece: int, largest: int
) -> Iterator[Found | Giant]:
    """Yield all records of a body, in their order, as they become complete.

    Args:
        count: of the records in it.
        at_once: maximum number of records in one `Found`.
        piece: approximate size in bytes of one `Found`, except for a larger single record.
        largest: maximum bytes of a record.

    Raises:
        RecordError: while iterating, the body does not match.
    """
    waiting: list[bytes] = []
    size, needed, left, dropped = 0, 1, count, 0
    for each in body:
        part = each[dropped:]
        dropped -= len(each) - len(part)
        if not part:
            continue
        waiting.append(part)
        size += len(part)
        if size < max(needed, piece):
            continue
        content, position = b"".join(waiting), 0
        waiting.clear()
        while left:
            walked = _walk(content, position, min(left, at_once))
            position, needed = walked.position, walked.needed
            if not walked.starts:
                break
            yield _to_found(content, walked)
            left -= len(walked.starts)
        here = len(content) - position
        if left and needed > largest:
            if here < _LONGEST_BEGINNING:
                needed = _LONGEST_BEGINNING
            else:
                yield Giant(needed, _offset_delta(content, position))
                left -= 1
                # The record is longer than the available bytes.
                dropped, position, here, needed = needed - here, len(content), 0, 1
        waiting, size = [content[position:]] if here else [], here
        # Release it before the next piece is created.
        del content
    content, position = b"".join(waiting), 0
    while left:
        walked = _walk(content, position, min(left, at_once))
        if not walked.starts:
            raise RecordError(f"its bytes end before the last {left} of {count} records")
        yield _to_found(content, walked)
        left -= len(walked.starts)
        position = walked.position
    if position != len(content) or dropped:
        raise RecordError(f"{len(content) - position or -dropped} bytes remain after {count} records")


def _to_found(content: bytes, walked: _Walked) -> Found:
    starts, ends = (np.array(each, dtype=np.int64) for each in (walked.starts, walked.ends))
    return Found(content, starts, ends)


def _offset_delta(content: bytes, position: int) -> int:
    try:
        _, position = decode_varint(content, position)
        _, position = decode_varint(content, position + 1)
        return decode_varint(content, position)[0]
    except (IndexError, ValueError) as error:
        raise RecordError(f"a record cannot be read: {error}") from error


def _walk(content: bytes, position: int, most: int) -> _Walked:
    """The complete records from `position` on."""
    starts: list[int] = []
    ends: list[int] = []
    size = len(content)
    for _ in range(most):
        try:
            # The main cost of batches with very many records, nearly all of which are short.
            length, start = content[position], position + 1
            if length < _ONE_BYTE:
                length = (length >> 1) ^ -(length & 1)
            else:
                length, start = decode_varint(content, position)
        except IndexError:
            return _Walked(starts, ends, position, size - position + 1)
        except ValueError as error:
            raise RecordError(f"a record cannot be read: {error}") from error
        if length <= 0:
            raise RecordError(f"a record claims to have {length} bytes")
        end = start + length
        if end > size:
            return _Walked(starts, ends, position, end - position)
        starts.append(start)
        ends.append(end)
        position = end
    return _Walked(starts, ends, position, 1)
