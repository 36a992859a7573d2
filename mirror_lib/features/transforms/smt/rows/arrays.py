"""Convert Arrow arrays to numpy arrays, and back, by their buffers: without copying, and without loading pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Booleans = NDArray[np.bool_]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

_WIDTHS: dict[Any, Any] = {4: np.int32, 8: np.int64}


def numbers_of(column: pa.Array) -> NDArray[Any]:
    """Return the numbers of a column of 32 or 64 bits; undefined where null."""
    kind = _WIDTHS[column.type.bit_width // 8]
    content = column.buffers()[1]
    if content is None or not len(column):
        return np.zeros(len(column), dtype=kind)
    return np.frombuffer(content, dtype=kind, count=len(column), offset=column.offset * np.dtype(kind).itemsize)


def nulls_of(column: pa.Array) -> Booleans:
    """Return which members of a column are null."""
    valid = column.buffers()[0] if column.null_count else None
    if valid is None:
        return np.zeros(len(column), dtype=np.bool_)
    bits = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little", count=column.offset + len(column))
    nulls: Booleans = bits[column.offset :] == 0
    return nulls


def edges_of(column: pa.Array) -> Int32s:
    """Return the offsets of the members of a column of texts, bytes or lists in its contents, and the end of the
    last.
    """
    content = column.buffers()[1]
    if content is None or not len(column):
        return np.zeros(1, dtype=np.int32)
    return np.frombuffer(content, dtype=np.int32, count=len(column) + 1, offset=column.offset * 4)


def column_of(numbers: Int32s | Int64s, valid: Booleans | None = None) -> pa.Array:
    """Return numbers as a column; null where `valid` says so."""
    kind = pa.int32() if numbers.dtype == np.int32 else pa.int64()
    return pa.Array.from_buffers(
        kind, len(numbers), [None if valid is None else bits_of(valid), pa.py_buffer(np.ascontiguousarray(numbers))]
    )


def bits_of(valid: Booleans) -> pa.Buffer | None:
    """Return the validity bitmap of a column; None if no member is null."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
