"""The headers of rows by columns: names as numbers, values by their position."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa

from mirror_lib.features.transforms.arrow_values import array_of
from mirror_lib.features.transforms.smt.rows.arrays import Booleans, Int64s, bits_of, column_of, edges_of, numbers_of
from mirror_lib.features.transforms.smt.rows.model import NeedsRecordsError

#: The content of an existing header; returns the written content.
Encode = Callable[[bytes | None], bytes | None]


class Headers:
    """The headers of each row, in their order."""

    def __init__(self, column: pa.ListArray) -> None:
        """Args:
        column: of headers as Spark's Kafka source has them.

        Raises:
            NeedsRecordsError: a header has no name.
        """
        self._kind = column.type
        edges = edges_of(column).astype(np.int64)
        first, stop = int(edges[0]), int(edges[-1])
        self._edges: Int64s = edges - first
        entries = column.values.slice(first, stop - first)
        names = entries.field(0).dictionary_encode()
        if names.null_count:
            raise NeedsRecordsError
        self._names: list[str] = names.dictionary.to_pylist()
        self._contents: pa.Array = entries.field(1)
        #: The number of each header's name.
        self._name_numbers: Int64s = numbers_of(names.indices).astype(np.int64)
        #: The number of each header's content; after those of `_contents` come those of `_added`.
        self._content_numbers: Int64s = np.arange(stop - first, dtype=np.int64)
        self._added: list[Callable[[], bytes | None]] = []

    def have(self, name: str) -> Booleans:
        """Return which rows have a header of that name."""
        found = np.append(0, np.cumsum(self._are(frozenset({name}))))
        has: Booleans = found[self._edges[1:]] > found[self._edges[:-1]]
        return has

    def drop(self, rows: Booleans, names: Collection[str]) -> None:
        """Remove the headers of these names from some rows."""
        self._keep(~(self._are(names) & np.repeat(rows, np.diff(self._edges))))

    def add(self, rows: Booleans, name: str, content: Callable[[], bytes | None]) -> None:
        """Add a header after the existing ones of some rows.

        Args:
            content: called only if the header is still there in the end.
        """
        if name not in self._names:
            self._names.append(name)
        places = self._edges[1:][rows]
        self._name_numbers = np.insert(self._name_numbers, places, self._names.index(name))
        self._content_numbers = np.insert(self._content_numbers, places, len(self._contents) + len(self._added))
        self._added.append(content)
        self._edges = self._edges + np.append(0, np.cumsum(rows))

    def column(self, rows: Booleans, encode: Encode | None) -> pa.Array:
        """Return the headers of some rows; null where there are none.

        Args:
            encode: None if contents are written unchanged.
        """
        counts = np.diff(self._edges)
        self._keep(np.repeat(rows, counts))
        counts = counts[rows]
        edges = np.append(np.int32(0), np.cumsum(counts, dtype=np.int32))
        names = array_of(self._names, pa.string()).take(column_of(self._name_numbers))
        entries = pa.Array.from_buffers(
            self._kind.value_type, len(names), [None], children=[names, self._written_headers(encode)]
        )
        return pa.Array.from_buffers(
            self._kind, len(counts), [bits_of(counts > 0), pa.py_buffer(edges)], children=[entries]
        )

    def _written_headers(self, encode: Encode | None) -> pa.Array:
        there = len(self._contents)
        is_added = self._content_numbers >= there
        if not is_added.any() and encode is None:
            return self._contents.take(column_of(self._content_numbers))
        added = {
            number: self._added[number - there]() for number in np.unique(self._content_numbers[is_added]).tolist()
        }
        contents = self._contents.take(column_of(self._content_numbers[~is_added])).to_pylist()
        written = iter(contents if encode is None else map(encode, contents))
        return array_of(
            [added[number] if number >= there else next(written) for number in self._content_numbers.tolist()],
            pa.binary(),
        )

    def _are(self, names: Collection[str]) -> Booleans:
        """Return which headers have one of these names."""
        wanted = np.array([name in names for name in self._names], dtype=np.bool_)
        found: Booleans = wanted[self._name_numbers]
        return found

    def _keep(self, kept: Booleans) -> None:
        self._name_numbers = self._name_numbers[kept]
        self._content_numbers = self._content_numbers[kept]
        self._edges = np.append(0, np.cumsum(kept))[self._edges]
