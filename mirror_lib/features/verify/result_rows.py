"""Verdicts as Arrow rows: the only data that executors return."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

#: Schema of the result of `mapInArrow`: one row for each bin.
VERDICT_DDL = "verdicts binary"
_SCHEMA = pa.schema([pa.field("verdicts", pa.binary(), nullable=False)])


def to_arrow(found: Sequence[object]) -> pa.RecordBatch:
    """One row with what was found in a bin, such as its verdicts, pickled: both sides run the same code.

    The array is made from buffers because `pyarrow.array` would load pandas, which costs a new worker over a second.
    """
    payload = pickle.dumps(list(found))
    offsets = pa.py_buffer(struct.pack("=ii", 0, len(payload)))
    column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(payload)])
    return pa.RecordBatch.from_arrays([column], schema=_SCHEMA)


def from_arrow(tables: Iterable[pa.Table | pa.RecordBatch]) -> list[Any]:
    """The inverse of `to_arrow`, for what Spark collected."""
    return [found for table in tables for payload in table.column(0).to_pylist() for found in pickle.loads(payload)]
