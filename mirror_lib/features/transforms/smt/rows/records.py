"""Chains that read keys or values: a record for each row, with only the parts that the chain reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from mirror_lib.features.transforms.arrow_values import array_of
from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.errors import SmtError
from mirror_lib.features.transforms.smt.record import RawRecord, Side
from mirror_lib.features.transforms.smt.rows.arrays import bits_of, column_of, edges_of, nulls_of, numbers_of
from mirror_lib.features.transforms.smt.rows.model import MadeRows, RefusedRowError
from mirror_lib.features.transforms.smt.rows.topics import Topics

_NO_TIMESTAMP_TYPE = -1
_MICROSECONDS = 1000


class RecordChain:
    """A chain for many batches; it keeps nothing of them."""

    def __init__(self, chain: SmtChain) -> None:
        self._transform = chain.runner().transform
        stages = chain.settings.stages
        transforms = [stage.transform for stage in stages]
        predicates = [stage.predicate for stage in stages]
        read = {side for each in transforms for side in each.sides()}
        # A chain that does not decode writes everything with the converters, changed or not.
        self._writes_key = chain.may_change_key or not chain.decodes
        self._writes_value = chain.may_change_value or not chain.decodes
        self._writes_headers = chain.may_change_headers
        self._routes = chain.may_route
        self._needs_key = self._writes_key or Side.KEY in read
        self._needs_value = self._writes_value or Side.VALUE in read
        self._needs_tombstones = any(isinstance(each, model.RecordIsTombstone) for each in predicates)
        self._needs_headers = self._writes_headers or any(isinstance(each, model.HasHeaderKey) for each in predicates)
        self._needs_times = any(isinstance(each, model.TimestampRouter | model.InsertField) for each in transforms)

    def run(self, batch: pa.RecordBatch, target_topic: Callable[[str], str]) -> MadeRows:
        """Return the result of the chain for rows.

        Args:
            batch: has the columns of Spark's Kafka source.
            target_topic: returns the target's name of a source topic.

        Raises:
            RefusedRowError: it rejects one of them.
        """
        rows: list[int] = []
        found: list[RawRecord] = []
        topics: list[str | None] = []
        for row, raw in enumerate(self._records(batch, target_topic)):
            try:
                made = self._transform(raw)
            except SmtError as error:
                raise RefusedRowError(row, error) from error
            if made is not None:
                rows.append(row)
                found.append(made)
                topics.append(None if made.topic == raw.topic else made.topic)
        kept = None if len(rows) == batch.num_rows else column_of(np.array(rows, dtype=np.int64))
        return MadeRows(kept, self._columns(batch, found, topics))

    def _records(self, batch: pa.RecordBatch, target_topic: Callable[[str], str]) -> Iterator[RawRecord]:
        topics = Topics(batch.column("topic"), target_topic).names()
        nothing: Iterator[Any] = repeat(None)
        keys = batch.column("key").to_pylist() if self._needs_key else nothing
        values = self._values(batch.column("value"))
        headers = _headers(batch.column("headers")) if self._needs_headers else repeat(())
        times = _times(batch) if self._needs_times else nothing
        partitions = batch.column("partition").to_pylist()
        # Ends with the shortest: some are infinite.
        return map(RawRecord, topics, partitions, keys, values, headers, times)

    def _values(self, column: pa.Array) -> Sequence[bytes | None] | Iterator[bytes | None]:
        if self._needs_value:
            values: list[bytes | None] = column.to_pylist()
            return values
        if not self._needs_tombstones or not column.null_count:
            return repeat(b"")
        return [None if is_null else b"" for is_null in nulls_of(column).tolist()]

    def _columns(
        self, batch: pa.RecordBatch, found: Sequence[RawRecord], topics: Sequence[str | None]
    ) -> dict[str, pa.Array]:
        made = {}
        if self._writes_key:
            made["key"] = array_of([record.key for record in found], pa.binary())
        if self._writes_value:
            made["value"] = array_of([record.value for record in found], pa.binary())
        if self._writes_headers:
            made["headers"] = _header_column([record.headers for record in found], batch.schema.field("headers").type)
        if self._routes:
            made["topic"] = array_of(topics, pa.string())
        return made


def _times(batch: pa.RecordBatch) -> list[int | None]:
    """Return epoch milliseconds; None for records in a format without timestamps."""
    column, types = batch.column("timestamp"), batch.column("timestampType").to_pylist()
    times = (numbers_of(column) // _MICROSECONDS).tolist()
    return [
        None if is_null or kind == _NO_TIMESTAMP_TYPE else time
        for time, kind, is_null in zip(times, types, nulls_of(column).tolist(), strict=True)
    ]


def _headers(column: pa.ListArray) -> list[tuple[tuple[str, bytes | None], ...]]:
    """Return the headers of each row; most topics have none."""
    if column.null_count == len(column):
        return [()] * len(column)
    # Not `to_pylist` of the whole, which makes a dict of each header.
    edges = edges_of(column)
    entries = column.values.slice(int(edges[0]), int(edges[-1] - edges[0]))
    names, contents = entries.field(0).to_pylist(), entries.field(1).to_pylist()
    pairs = list(zip(names, contents, strict=True))
    return [tuple(pairs[begin:end]) for begin, end in pairwise((edges - edges[0]).tolist())]


def _header_column(rows: Sequence[tuple[tuple[str, bytes | None], ...]], kind: pa.DataType) -> pa.Array:
    """Return headers as a column, null where there are none."""
    pairs = [pair for headers in rows for pair in headers]
    names, contents = (pa.string(), [name for name, _ in pairs]), (pa.binary(), [content for _, content in pairs])
    children = [array_of(members, of) for of, members in (names, contents)]
    entries = pa.Array.from_buffers(kind.value_type, len(pairs), [None], children=children)
    counts = np.array([len(headers) for headers in rows], dtype=np.int32)
    edges = np.append(np.int32(0), np.cumsum(counts, dtype=np.int32))
    return pa.Array.from_buffers(kind, len(rows), [bits_of(counts > 0), pa.py_buffer(edges)], children=[entries])
