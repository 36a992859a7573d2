"""Schema ids of whole columns of keys or values: as in `wire`, by numpy on Arrow's buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mirror_lib.schemas.wire import ID_FRAME_BYTES, MAGIC_ID, checked_id

_Bytes = NDArray[np.uint8]
_Places = NDArray[np.int64]


class _Column(NamedTuple):
    """The parts of a binary array; a slice is resolved."""

    #: One more than there are values: the start of each in the bytes, and the end of the last one.
    offsets: _Places
    content: _Bytes
    #: Per value, true if it is not null.
    present: NDArray[np.bool_]


def schema_ids(values: pa.BinaryArray) -> pa.Int32Array:
    """The schema id of each value; null if there is none, and for nulls.

    Args:
        values: keys or values, of the type binary or large_binary.
    """
    column = _parts(values)
    rows, ids = _find_frames(column)
    numbers = np.zeros(len(values), dtype=np.int32)
    numbers[rows] = ids
    known = np.zeros(len(values), dtype=np.bool_)
    known[rows] = True
    buffers = [pa.py_buffer(np.packbits(known, bitorder="little")), pa.py_buffer(numbers)]
    # `pyarrow.array` would load pandas, which costs a new worker more than a second.
    return pa.Array.from_buffers(pa.int32(), len(values), buffers)


def with_schema_ids(values: pa.BinaryArray, replacements: Mapping[int, int]) -> pa.BinaryArray:
    """The same column with other schema ids; all other bytes, nulls, and ids without a replacement are unchanged.

    Args:
        values: keys or values, of the type binary or large_binary.
        replacements: new id by old id.

    Raises:
        ValueError: a replacement is not a valid schema id.
    """
    for replacement in replacements.values():
        checked_id(replacement)
    column = _parts(values)
    rows, ids = _find_frames(column)
    known, places = np.unique(ids, return_inverse=True)
    targets = np.array([replacements.get(int(each), int(each)) for each in known], dtype=np.int64)
    new = targets[places]
    changed = new != ids
    if not changed.any():
        return values
    first, last = column.offsets[0], column.offsets[-1]
    content = column.content[first:last].copy()
    starts = column.offsets[rows[changed]] - first
    for place in range(1, ID_FRAME_BYTES):
        content[starts + place] = new[changed] >> 8 * (ID_FRAME_BYTES - 1 - place) & 0xFF
    offsets = (column.offsets - first).astype(_offset_type(values.type))
    validity = pa.py_buffer(np.packbits(column.present, bitorder="little"))
    return pa.Array.from_buffers(values.type, len(values), [validity, pa.py_buffer(offsets), pa.py_buffer(content)])


def _find_frames(column: _Column) -> tuple[_Places, _Places]:
    """The rows that have a schema id, and their ids."""
    starts, lengths = column.offsets[:-1], np.diff(column.offsets)
    rows = np.flatnonzero(column.present & (lengths >= ID_FRAME_BYTES))
    rows = rows[column.content[starts[rows]] == MAGIC_ID]
    ids = np.zeros(len(rows), dtype=np.int64)
    for place in range(1, ID_FRAME_BYTES):
        ids = ids << 8 | column.content[starts[rows] + place]
    real = (ids > 0) & (ids < 2**31)
    return rows[real], ids[real]


def _parts(values: pa.BinaryArray) -> _Column:
    count, begin = len(values), values.offset
    validity, offsets, content = values.buffers()
    if count == 0:
        return _Column(np.zeros(1, dtype=np.int64), _as_numpy(None, np.uint8), np.zeros(0, dtype=np.bool_))
    places = _as_numpy(offsets, _offset_type(values.type))[begin : begin + count + 1].astype(np.int64)
    if validity is None:
        present = np.ones(count, dtype=np.bool_)
    else:
        bits = np.unpackbits(_as_numpy(validity, np.uint8), count=begin + count, bitorder="little")
        present = bits[begin:].astype(np.bool_)
    return _Column(places, _as_numpy(content, np.uint8), present)


def _as_numpy(buffer: Any, kind: Any) -> NDArray[Any]:
    return np.zeros(0, dtype=kind) if buffer is None or buffer.size == 0 else np.frombuffer(buffer, dtype=kind)


def _offset_type(kind: pa.DataType) -> Any:
    return np.int64 if pa.types.is_large_binary(kind) else np.int32
