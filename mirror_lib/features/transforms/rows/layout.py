"""The columns of a flow's records on their way through Spark, including the one with a row's origin.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mirror_lib.features.transforms.arrow.rows import KAFKA_SCHEMA
from mirror_lib.records.header import Codec

#: Every row carries it unchanged from the reader to the writer.
SOURCE_COLUMN = "__mirror_source"
_PLACE, _OFFSET = "place", "offset"
_SOURCE_TYPE = pa.struct([pa.field(_PLACE, pa.int32()), pa.field(_OFFSET, pa.int64())])
#: The reader's output: the columns of Spark's Kafka source, and the origin of each row.
READ_SCHEMA = KAFKA_SCHEMA.append(pa.field(SOURCE_COLUMN, _SOURCE_TYPE))
#: The same for Spark.
SOURCE_DDL = f"{SOURCE_COLUMN} struct<{_PLACE}: int, {_OFFSET}: bigint>"
_HEADERS_DDL = "headers array<struct<key: string, value: binary>>"
READ_DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    f"{_HEADERS_DDL}, {SOURCE_DDL}"
)
#: The writer's input; topic and partition are null if no transform sets them.
WRITTEN_DDL = (
    f"key binary, value binary, {_HEADERS_DDL}, timestamp timestamp, topic string, partition int, {SOURCE_DDL}"
)
#: A place consists of the number of a partition in its job and, in the lowest bits, the codec of the row's batch, so
#: that rows are written with the codec that they were read with.
_CODEC_BITS = 3

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


class Sources(NamedTuple):
    """The origins of some rows, by columns."""

    places: Int32s
    offsets: Int64s


def place_of(number: int, codec: int) -> int:
    """The place of rows of partition `number` of the job."""
    return number << _CODEC_BITS | codec


def number_of(place: int) -> int:
    """The number in any integer that is supposed to be a place."""
    return place >> _CODEC_BITS


def number_and_codec(place: int) -> tuple[int, Codec]:
    """The inverse of `place_of`."""
    return number_of(place), Codec(place & ((1 << _CODEC_BITS) - 1))


def with_source(records: pa.RecordBatch, place: int) -> pa.RecordBatch:
    """Records of `KAFKA_SCHEMA` as rows of `READ_SCHEMA`."""
    places = np.full(records.num_rows, place, dtype=np.int32)
    # Built from buffers: `pyarrow.array` might load pandas, which costs a new worker more than a second.
    column = pa.Array.from_buffers(pa.int32(), len(places), [None, pa.py_buffer(places)])
    sources = pa.StructArray.from_arrays([column, records.column("offset")], fields=list(_SOURCE_TYPE))
    return pa.RecordBatch.from_arrays([*records.columns, sources], schema=READ_SCHEMA)


def sources_of(rows: pa.RecordBatch) -> Sources:
    """The origins of the writer's rows.

    Raises:
        ValueError: the column is missing, or was changed.
    """
    number = rows.schema.get_field_index(SOURCE_COLUMN)
    if number < 0:
        raise ValueError(f"the column {SOURCE_COLUMN} is missing")
    column = rows.column(number)
    places, offsets = (column.field(at) for at in range(2))
    if column.null_count or places.null_count or offsets.null_count:
        raise ValueError(f"the column {SOURCE_COLUMN} has rows without a value")
    count = len(column)
    return Sources(
        np.frombuffer(places.buffers()[1], dtype=np.int32, count=count, offset=4 * places.offset),
        np.frombuffer(offsets.buffers()[1], dtype=np.int64, count=count, offset=8 * offsets.offset),
    )
