"""The topics of rows as numbers of names: the rows of a batch have few topics, usually one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from mirror_lib.features.transforms.arrow_values import array_of
from mirror_lib.features.transforms.smt.rows.arrays import Booleans, Int64s, column_of, edges_of


class Topics:
    """The topic of each row; equal numbers are equal names."""

    def __init__(self, column: pa.Array, target_topic: Callable[[str], str]) -> None:
        """Args:
        column: the source topics.
        target_topic: what each of them is called on the target.
        """
        self._names: list[str] = []
        self._known: dict[str, int] = {}
        sources = _only_name(column)
        if sources is not None:
            number = self._number(target_topic(sources)) if len(column) else 0
            self.numbers: Int64s = np.full(len(column), number, dtype=np.int64)
        else:
            names = column.to_pylist()
            numbers = {name: self._number(target_topic(name)) for name in dict.fromkeys(names)}
            self.numbers = np.array([numbers[name] for name in names], dtype=np.int64)
        self._before = self.numbers

    def names(self) -> list[str]:
        """Return the topic of each row."""
        names = self._names
        return [names[number] for number in self.numbers.tolist()]

    def rename(self, rows: Booleans, rename: Callable[[str], str]) -> None:
        """Rename the topics of some rows by their present names."""
        renamed = np.arange(len(self._names))
        for number in np.unique(self.numbers[rows]).tolist():
            renamed[number] = self._number(rename(self._names[number]))
        self.numbers = np.where(rows, renamed[self.numbers], self.numbers)

    def rename_by(self, rows: Booleans, facts: Int64s, rename: Callable[[str, int], str]) -> None:
        """Like `rename`, with a fact of each row as second argument.

        Args:
            facts: of all rows.
        """
        some_facts, fact_numbers = np.unique(facts[rows], return_inverse=True)
        pairs, pair_numbers = np.unique(
            self.numbers[rows] * len(some_facts) + fact_numbers.reshape(-1), return_inverse=True
        )
        renamed = [
            self._number(rename(self._names[pair // len(some_facts)], int(some_facts[pair % len(some_facts)])))
            for pair in pairs.tolist()
        ]
        self.numbers = self.numbers.copy()
        self.numbers[rows] = np.array(renamed, dtype=np.int64)[pair_numbers.reshape(-1)]

    def are(self, condition: Callable[[str], bool]) -> Booleans:
        """Return which rows have a topic that fulfils a condition; it is called once for each name."""
        found = np.zeros(len(self._names), dtype=np.bool_)
        for number in np.unique(self.numbers).tolist():
            found[number] = condition(self._names[number])
        return found[self.numbers]

    def changed_topics(self, rows: Booleans) -> pa.Array:
        """Return the topics of some rows as a column, null where they are unchanged."""
        numbers = self.numbers[rows]
        is_new = numbers != self._before[rows]
        if not is_new.any():
            return pa.nulls(len(numbers), pa.string())
        return array_of(self._names, pa.string()).take(column_of(numbers, is_new))

    def _number(self, name: str) -> int:
        number = self._known.get(name)
        if number is None:
            number = self._known[name] = len(self._names)
            self._names.append(name)
        return number


def _only_name(column: pa.Array) -> str | None:
    """Return the name that all rows have; None if there are several."""
    if column.null_count:
        return None
    edges = edges_of(column)
    first, count = int(edges[0]), len(column)
    size = int(edges[1]) - first if count else 0
    if (np.diff(edges) != size).any():
        return None
    data = column.buffers()[2]
    content = b"" if data is None else data[first : int(edges[-1])].to_pybytes()
    name = content[:size]
    return name.decode() if content == name * count else None
