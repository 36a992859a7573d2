"""Results as Arrow rows: the only data that executors return. Records never enter Spark."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from mirror_lib.offsets.runs import decode, encode
from mirror_lib.planning.model import PartitionResult

#: Schema for `mapInArrow`: one row for each bin.
RESULT_DDL = "results binary"
_SCHEMA = pa.schema([pa.field("results", pa.binary(), nullable=False)])


def to_arrow(results: Sequence[PartitionResult]) -> pa.RecordBatch:
    """One row with the results of a bin.

    Results are pickled, since both sides run the same code and errors must keep their class; the offset runs, which may
    be many, are encoded compactly. The array is made from buffers because `pyarrow.array` would load pandas, which
    costs a new worker more than a second.
    """
    payload = pickle.dumps([(replace(result, runs=()), encode(result.runs)) for result in results])
    offsets = pa.py_buffer(struct.pack("=ii", 0, len(payload)))
    column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(payload)])
    return pa.RecordBatch.from_arrays([column], schema=_SCHEMA)


def from_arrow(tables: Iterable[pa.Table | pa.RecordBatch]) -> list[PartitionResult]:
    """The inverse of `to_arrow`, for the rows that Spark collected."""
    return [
        replace(result, runs=decode(runs))
        for table in tables
        for payload in table.column(0).to_pylist()
        for result, runs in pickle.loads(payload)
    ]
