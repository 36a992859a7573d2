"""Verdicts as Arrow rows: the one thing that travels back from executors."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Sequence

import pyarrow as pa

from mirror_lib.verify.model import PartitionVerdict

#: What `mapInArrow` is told: one row for each bin.
VERDICT_DDL = "verdicts binary"
_SCHEMA = pa.schema([pa.field("verdicts", pa.binary(), nullable=False)])


def to_arrow(verdicts: Sequence[PartitionVerdict]) -> pa.RecordBatch:
    """One row with the verdicts of a bin, pickled: both sides run the same code.

    The array is made from buffers because `pyarrow.array` would load pandas, which costs a new worker over a second.
    """
    payload = pickle.dumps(list(verdicts))
    offsets = pa.py_buffer(struct.pack("=ii", 0, len(payload)))
    column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(payload)])
    return pa.RecordBatch.from_arrays([column], schema=_SCHEMA)


def from_arrow(tables: Iterable[pa.Table | pa.RecordBatch]) -> list[PartitionVerdict]:
    """The inverse of `to_arrow`, for what Spark collected."""
    return [verdict for table in tables for payload in table.column(0).to_pylist() for verdict in pickle.loads(payload)]
